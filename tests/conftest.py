"""Settings for all tests: a slow or busy machine must not fail what is right."""

from hypothesis import HealthCheck, settings

# Wall-clock limits for one example say more about the machine than about the code. Tests that
# promise speed measure processor time themselves, and every test has pytest's timeout.
settings.register_profile(
    "steady", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("steady")
