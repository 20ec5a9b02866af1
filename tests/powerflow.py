"""The worked example of PowerFlow's iteration time (Eq. 1-5) and power, which tests share."""

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

ENERGY = {
    "f0_mhz": 800.0,
    "theta": 4.0,
    "beta": 0.5,
    "static_w": 32.0,
    "grad_b_low_w": 4.0,
    "grad_a_low_w": 20.0,
    "grad_d_high_w": 10.08,
    "grad_c_high_w": 10.0,
    "grad_b_high_w": -5.0,
    "grad_a_high_w": 10.0,
    "sync_b_low_w": 10.0,
    "sync_a_low_w": 20.0,
    "sync_d_high_w": 6.16,
    "sync_c_high_w": 20.0,
    "sync_b_high_w": -10.0,
    "sync_a_high_w": 20.0,
}
"""φ = .02f+4 below 800 MHz, 1e-8f³−.5e-5f²+.01f+10.08 above, and so on, in GHz."""
