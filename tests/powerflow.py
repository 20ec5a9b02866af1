"""PowerFlow's iteration time (Eq. 1-5) with parameters that tests share."""

TIME = {
    "a_io_s": 0.004,
    "b_io_s": 2e-5,
    "a_grad_s": 0.006,
    "b_grad_s": 4e-4,
    "k_grad_s_mhz": 1.2,
    "A_local_s_mhz": 6.0,
    "K_local_s_mhz": 1.5,
    "B_local_s": 0.002,
    "theta_local_s": 0.004,
    "A_node_s_mhz": 15.0,
    "K_node_s_mhz": 3.0,
    "B_node_s": 0.004,
    "theta_node_s": 0.010,
    "gamma1": 2.0,
    "gamma2": 1.5,
}
