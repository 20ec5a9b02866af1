"""The report in a real browser: Chromium without a window, driven through its own driver."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_files
from report_files import HOSTILE

from optgap.reporting import report

webdriver = pytest.importorskip("selenium.webdriver", reason="needs the extra browser")

pytestmark = pytest.mark.slow
ROWS = 1_234


def _installed(*names: str) -> str:
    found = next((path for path in map(shutil.which, names) if path), None)
    if found is None:
        pytest.skip(f"no {names[0]} on this machine")
    return found


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = _installed("chromium", "chromium-browser", "google-chrome")
    driver = _installed("chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    made = webdriver.Chrome(options=options, service=service)
    yield made
    made.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pages")
    hostile = tmp_path_factory.mktemp("hostile")
    (folder / "runs.json").write_text(json.dumps({"rows": report_files.rows(ROWS)}))
    report(report_files.write(folder), folder / "all.html")
    report([folder / "runs.json"], folder / "runs.html")
    report(report_files.write(hostile, HOSTILE), folder / "hostile.html", title=HOSTILE)
    return {name: (folder / f"{name}.html").as_uri() for name in ("all", "runs", "hostile")}


@pytest.fixture(autouse=True)
def _as_new(request: pytest.FixtureRequest) -> None:
    driver = request.getfixturevalue("browser")
    emulate(driver)
    resize(driver, 1280)
    driver.get_log("browser"), driver.get_log("performance")


def emulate(driver: Any, media: str = "", scheme: str = "light") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def resize(driver: Any, width: int) -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


LAST = "#s1 [data-table]:last-of-type"


def column(driver: Any, index: int) -> list[str]:
    script = (
        f"return [...document.querySelectorAll('{LAST} tbody tr')]"
        f".map(r => r.cells[{index}].dataset.v ?? r.cells[{index}].textContent)"
    )
    found: list[str] = driver.execute_script(script)
    return found


def heads(driver: Any) -> list[Any]:
    found: list[Any] = driver.find_elements("css selector", f"{LAST} thead button")
    return found


def count(driver: Any) -> str:
    return str(driver.find_element("css selector", f"{LAST} [data-count]").text)


def test_the_page_runs_without_a_word_and_without_network(
    browser: Any, pages: dict[str, str]
) -> None:
    for url in pages.values():
        browser.get(url)
        assert browser.execute_script("return 'ready' in document.documentElement.dataset")
        assert browser.get_log("browser") == []
        asked = [
            json.loads(entry["message"])["message"]["params"]["request"]["url"]
            for entry in browser.get_log("performance")
            if '"Network.requestWillBeSent"' in entry["message"]
        ]
        assert all(address.startswith(("file:", "data:")) for address in asked)


def test_hostile_names_do_nothing(browser: Any, pages: dict[str, str]) -> None:
    browser.get(pages["hostile"])
    assert browser.execute_script("return window.pwned") is None
    assert "<script>window.pwned=1</script>" in browser.find_element("tag name", "h1").text
    assert browser.execute_script("return document.querySelectorAll('script').length") == 1


def test_a_click_sorts_numbers_as_numbers_and_what_is_missing_last(
    browser: Any, pages: dict[str, str]
) -> None:
    browser.get(pages["runs"])
    names = [head.text for head in heads(browser)]
    place = names.index("gap_to_bound")
    expected = sorted(
        row["gap_to_bound"] for row in report_files.rows(ROWS) if row["gap_to_bound"] is not None
    )
    for order in (expected, expected[::-1]):
        heads(browser)[place].click()
        assert [float(value) for value in column(browser, place)] == order[:100]
    parent = heads(browser)[place].find_element("xpath", "..")
    assert parent.get_attribute("aria-sort") == "descending"
    assert "sorted by gap_to_bound, descending" in browser.find_element(
        "css selector", "[data-said]"
    ).get_attribute("textContent")
    for _ in range(20):
        browser.execute_script(f"document.querySelectorAll('{LAST} .tools button')[1].click()")
    assert column(browser, place)[-1] == ""


def test_sorting_lays_out_no_more_rows_than_are_shown(browser: Any, pages: dict[str, str]) -> None:
    browser.get(pages["runs"])
    heads(browser)[0].click()
    assert len(column(browser, 0)) == 100
    assert count(browser) == "rows 1–100 of 1,234"
    assert browser.execute_script("return document.querySelectorAll('tbody[hidden]').length") == 0


def test_the_keyboard_reaches_and_sorts_everything(browser: Any, pages: dict[str, str]) -> None:
    from selenium.webdriver.common.keys import Keys

    browser.get(pages["runs"])
    body = browser.find_element("tag name", "body")
    body.send_keys(Keys.TAB)
    first = browser.switch_to.active_element
    assert first.text == "Skip to the results"
    wanted = heads(browser)[0]
    for _ in range(40):
        browser.switch_to.active_element.send_keys(Keys.TAB)
        if browser.switch_to.active_element == wanted:
            break
    assert browser.switch_to.active_element == wanted
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    wanted.send_keys(Keys.ENTER)
    assert wanted.find_element("xpath", "..").get_attribute("aria-sort") == "ascending"
    assert browser.switch_to.active_element == wanted
    wanted.send_keys(Keys.SPACE)
    assert wanted.find_element("xpath", "..").get_attribute("aria-sort") == "descending"


def test_a_filter_keeps_the_rows_that_hold_the_words(browser: Any, pages: dict[str, str]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(pages["runs"])
    field = browser.find_element("css selector", f"{LAST} input")
    field.send_keys("HPS")
    WebDriverWait(browser, 10).until(lambda d: "of 411 (of 1,234)" in count(d))
    place = [head.text for head in heads(browser)].index("method")
    assert set(column(browser, place)) == {"hps"}
    field.send_keys("zzz")
    WebDriverWait(browser, 10).until(lambda d: count(d).startswith("no row matches"))


def test_pages_of_a_table_turn(browser: Any, pages: dict[str, str]) -> None:
    browser.get(pages["runs"])
    back, ahead = browser.find_elements("css selector", f"{LAST} .tools button")
    assert not back.is_enabled()
    ahead.click()
    assert count(browser) == "rows 101–200 of 1,234"
    browser.execute_script(
        "const s = document.querySelector(arguments[0]); s.value = '500';"
        "s.dispatchEvent(new Event('change'))",
        f"{LAST} select",
    )
    assert count(browser) == "rows 1–500 of 1,234"


def test_dark_follows_the_system_until_the_reader_chooses(
    browser: Any, pages: dict[str, str]
) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    browser.get(pages["all"])
    assert browser.execute_script(ground) == "rgb(255, 255, 255)"
    emulate(browser, scheme="dark")
    dark = browser.execute_script(ground)
    assert dark == "rgb(21, 24, 28)"
    button = browser.find_element("css selector", "[data-theme-button]")
    button.click()
    assert button.text == "Colours: light"
    assert browser.execute_script(ground) == "rgb(255, 255, 255)"
    browser.get(pages["runs"])  # remembered
    assert browser.execute_script(ground) == "rgb(255, 255, 255)"
    emulate(browser, scheme="light")
    browser.find_element("css selector", "[data-theme-button]").click()
    assert browser.execute_script(ground) == dark
    browser.execute_script("localStorage.clear()")


def test_drawings_take_the_pages_ink(browser: Any, pages: dict[str, str]) -> None:
    emulate(browser, scheme="dark")
    browser.get(pages["all"])
    inks = browser.execute_script(
        "return [...document.querySelectorAll('figure')].map(f => "
        "[f.className, getComputedStyle(f.querySelector('svg')).fill])"
    )
    assert ["card", "rgb(0, 0, 0)"] in inks
    assert ["", "rgb(232, 232, 232)"] in inks


@pytest.mark.parametrize("width", [320, 768, 1280])
def test_nothing_but_tables_and_drawings_is_wider_than_the_window(
    browser: Any, pages: dict[str, str], width: int
) -> None:
    resize(browser, width)
    for name in ("all", "hostile"):
        browser.get(pages[name])
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_on_paper_there_are_results_and_no_controls(browser: Any, pages: dict[str, str]) -> None:
    import base64

    emulate(browser, scheme="dark")
    browser.get(pages["all"])
    emulate(browser, media="print", scheme="dark")
    shown = browser.execute_script(
        "return [...document.querySelectorAll('nav, .theme, .tools input, .tools button')]"
        ".filter(e => e.getClientRects().length).length"
    )
    assert shown == 0
    ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    heads_shown = browser.execute_script(
        "return getComputedStyle(document.querySelector('thead')).display"
    )
    assert heads_shown == "table-header-group"  # repeated on every sheet
    printed = browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")


def test_without_scripts_every_row_is_there(browser: Any, pages: dict[str, str]) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(pages["runs"])
        rows = browser.find_elements("css selector", f"{LAST} tbody tr")
        assert len(rows) == ROWS
        assert rows[-1].is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_a_page_can_be_looked_at(browser: Any, pages: dict[str, str], tmp_path: Path) -> None:
    browser.get(pages["all"])
    assert browser.save_screenshot(str(tmp_path / "page.png"))
    assert (tmp_path / "page.png").stat().st_size > 10_000
