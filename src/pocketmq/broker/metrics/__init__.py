"""The broker's figures for Prometheus: what is measured, how it is named, where it is served.

Imported only by a broker that shows metrics; all others pay nothing for it.
"""
