"""The broker's figures for Prometheus: what is measured, how it is named, where it is served.

`families` and `server`, and with them prometheus-client, are imported only by a broker that shows
metrics; all others pay nothing for it.
"""
