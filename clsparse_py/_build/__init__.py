"""From a template to a kernel that can be enqueued: sources, declarations, programs, refused kernels."""
