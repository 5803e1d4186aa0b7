"""The page of the explorer: what it shows of a release, and the release as one HTML file.

Reads what a `Release` answers, and nothing else. It lies below `releases/`, so that
`Release.explore` can call it; the server in `web/` hands out the same parts over HTTP.
"""
