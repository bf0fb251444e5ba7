//! Every form that a tool can have.

mod arguments_struct;
mod constraints;
mod context_anywhere;
mod every_item;
mod hooks;
mod methods;
mod odd_functions;
mod results;
mod schema_lock;
