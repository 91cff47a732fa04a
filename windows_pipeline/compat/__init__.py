"""Every use of a private part of a dependency, one module for each dependency."""
