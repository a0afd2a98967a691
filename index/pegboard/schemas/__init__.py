"""Tools as their sources declare them: function schemas, Python functions, loose parameters."""
