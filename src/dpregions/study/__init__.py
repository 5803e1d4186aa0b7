"""Studies and experiments: everything here is for measuring, nothing here makes a release.

The release path never imports this package.
"""

from dpregions import extras

extras.need("curator")
