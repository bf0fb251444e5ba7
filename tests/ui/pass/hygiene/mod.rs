//! Surroundings in which generated code must keep its meaning.

mod borrowed_text;
mod conditional;
mod docs_anywhere;
mod generated_by_macros;
mod names_of_arguments;
mod names_of_parameters;
mod no_prelude;
mod places;
mod shadowed_macros;
mod shadowed_modules;
mod shadowed_traits;
mod shadowed_types;
