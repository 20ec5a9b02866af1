"""Small, whole files for every reader: what the hostile ones are made from."""

from __future__ import annotations

TABLES: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "placement": (
        {
            "nodes": "sn,cpu_milli,memory_mib,gpu,model\nn0,16000,4096,2,G2\nn1,8000,4096,0,\n",
            "tasks": (
                "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
                "p0,1000,10,1,500,\np1,2000,20,2,1000,G2\np2,500,0,0,0,\n"
            ),
            "order": "seq,task\n0,p2\n1,p0\n2,p1\n",
            "ranks": "rank,node\n0,n1\n1,n0\n",
            "devices": "model,idle_w,full_w\nG2,30,150\n",
        },
        {},
    ),
    "coscheduling": (
        {
            "profiles": (
                "app,gpu_count,runtime_s,avg_power_per_gpu_w,dram_util_sum\n"
                "a,1,100,300,0.5\na,2,60,280,0.9\nb,1,50,200,0.3\n"
            ),
            "jobs": "app,count\na,1\nb,2\n",
        },
        {"gpus": "4", "numa": "2", "idle_w": "70"},
    ),
    "queueing": (
        {
            "jobs": (
                "job,arrival_s,duration_s,gpus,type,iterations,estimate_s\n"
                "a,0,100,2,train,10,120\nb,5,60,8,infer,5,60\nc,7,30,1,train,1,20\n"
            )
        },
        {"nodes": "1", "gpus_per_node": "8"},
    ),
    "consolidation": (
        {
            "tasks": (
                "task,memory_gb,submit_s,gpus,duration_s,kappa,util_percent\n"
                "a,12,0,1,100,1.2,50\nb,10,0,2,60,1.5,30\nc,6,10,1,30,1.1,40\n"
            ),
            "series": (
                "task,t_s,util_percent\na,0,50\na,10,60\nb,0,20\nb,10,30\nc,0,70\nc,10,10\n"
            ),
        },
        {"servers": "2", "gpus_per_server": "2", "gpu_memory_gb": "32"},
    ),
    "elastic": (
        {
            "jobs": "job,submit_s,model,batch,iterations,gpus\na,0,m,8,100,1\nb,5,m,8,50,2\n",
            "models": (
                '{"schema": "optgap.elastic.models/1", "frequencies_mhz": [600, 1000],'
                ' "models": [{"name": "m", "tables": [{"batch": 8, "counts": [1, 2],'
                ' "time_s": [[1.0, 0.7], [0.6, 0.4]], "power_w": [[80, 120], [160, 240]]}]}]}'
            ),
        },
        {"gpus": "2", "gpus_per_node": "2", "eta": "0.9", "p_max_w": "150", "idle_w": "10"},
    ),
}
"""Per family the CSV files of ``optgap generate``, and the parameters that go with them."""

TRACES = {
    "swf.swf": (
        "queueing",
        "jobs",
        (
            "; a log\n1 0 10 60 2 -1 -1 2 120 -1 1 3 4 -1 1 -1 -1 -1\n"
            "2 5 0 30 1 -1 -1 1 60 -1 1 3 4 -1 1 -1 -1 -1\n"
        ),
    ),
    "philly.csv": (
        "elastic",
        "trace",
        "timestamp,duration,num_gpus\n2017-10-03 12:00:00,100,1\n2017-10-03 12:01:00,50,2\n",
    ),
    "elasticflow.csv": (
        "elastic",
        "trace",
        "submit_time,model_name,batch_size,num_gpu,duration\n6.0,bert,64,2,900\n",
    ),
}
"""Public traces: whose family reads them, by which option, and a whole one."""

PROFILES = {
    "sweep.csv": "frequency_mhz,power_w,time_s\n500,80,2.0\n600,90,1.7\n700,100,1.45\n",
    "smi.csv": (
        "timestamp, index, power.draw [W], clocks.sm [MHz]\n"
        "2024/05/01 10:00:00.000, 0, 60.1 W, 1000 MHz\n"
        "2024/05/01 10:00:01.000, 0, 61.2 W, 1000 MHz\n"
    ),
    "training.csv": "num_nodes,num_replicas,local_bsz,step_time\n1,1,8,0.1\n1,2,8,0.12\n",
}
"""Profiles in forms that are told apart by their headers."""

HOSTILE_CELLS = (
    "",
    " ",
    "-1",
    "0",
    "0.5",
    "1e308",
    "1e999",
    "nan",
    "inf",
    "9" * 400,
    "1_000",
    "0x10",
    "１２",
    "=1+1",
    "../../etc/passwd",
    "a\x00b",
    '"',
    'a"b',
    "1;2",
    "2026-03-01T12:00:00Z",
    "2026-02-30",
    "0001-01-01T00:00:00+14:00",
    "x" * 100_000,
)


def wrong_tables(text: str) -> list[tuple[str, bytes]]:
    """`text` with one thing wrong, and what that is."""
    lines = text.splitlines()
    header, rows = lines[0], lines[1:]
    found: list[tuple[str, bytes]] = [
        ("nothing", b""),
        ("header only", f"{header}\n".encode()),
        ("no header", "\n".join(rows).encode()),
        ("header twice", "\n".join([header, *lines]).encode()),
        ("a column twice", "\n".join(f"{x},{x.split(',')[0]}" for x in lines).encode()),
        ("UTF-16", text.encode("utf-16")),
        ("Latin-1", text.replace("a", "\xe4").encode("latin-1")),
        ("NUL bytes", text.encode() + b"\x00" * 10),
        ("binary", bytes(range(256)) * 4),
        ("semicolons", text.replace(",", ";").encode()),
        ("carriage returns", text.replace("\n", "\r").encode()),
        ("an open quote", (text + '"').encode()),
        ("a quoted line break", text.replace(",", ',"\n', 1).encode()),
        ("a last row cut", text.rstrip()[: -len(rows[-1]) // 2 - 1].encode()),
        ("short rows", "\n".join([header, *(x.rsplit(",", 1)[0] for x in rows)]).encode()),
        ("long rows", "\n".join([header, *(x + ",1,2" for x in rows)]).encode()),
        ("every row twice", "\n".join([header, *rows, *rows]).encode()),
        ("HTML", b"<!DOCTYPE html><html><body>404 Not Found</body></html>\n"),
        ("JSON", b'{"schema": "optgap.result/1"}'),
    ]
    for column, name in enumerate(header.split(",")):
        cut = [",".join(c for k, c in enumerate(x.split(",")) if k != column) for x in lines]
        found.append((f"without {name}", "\n".join(cut).encode()))
        for cell in HOSTILE_CELLS:
            cells = rows[-1].split(",")
            cells[column] = cell
            text_out = "\n".join([header, *rows[:-1], ",".join(cells)]) + "\n"
            found.append((f"{name} = {cell[:20]!r}", text_out.encode()))
    return found
