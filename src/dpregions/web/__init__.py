"""The explorer: releases as a page, an API and a single file. It reads releases, never regions."""
