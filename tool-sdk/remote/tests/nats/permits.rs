//! Permits that a worker must refuse.
