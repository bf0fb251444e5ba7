//! The macros that are not attributes.

/// Makes sure that the linker keeps the tools of a crate.
///
/// A crate that stands only in `Cargo.toml` and that no code names is left out of the
/// program, and its tools with it.
///
/// # Examples
///
/// ```
/// // In a program that uses the tools of the crates `my_tools` and `your_tools`:
/// // tool_sdk::link!(my_tools, your_tools);
/// tool_sdk::link!(tool_sdk);
/// ```
#[macro_export]
macro_rules! link {
    ($($krate:ident),+ $(,)?) => {
        $(#[allow(unused_imports, clippy::allow_attributes, clippy::allow_attributes_without_reason)] use ::$krate as _;)+
    };
    ($($other:tt)*) => {
        ::core::compile_error! {
            "expected the names of crates\nhelp: write `link!(my_tools)`, with `_` for each `-`"
        }
    };
}

/// A list of tools, named by their functions.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Registry, tool, tools};
///
/// /// Say hello.
/// #[tool(read)]
/// fn hello() -> &'static str {
///     "hello"
/// }
///
/// let registry = Registry::builder().add(tools![hello]).build()?;
/// assert!(registry.contains("hello"));
/// # Ok::<(), tool_sdk::RegistryError>(())
/// ```
#[macro_export]
macro_rules! tools {
    ($($tool:path),* $(,)?) => {
        <$crate::__private::Vec<_> as ::core::convert::From<_>>::from([$(<$tool as $crate::ToolFn<_>>::tool().shared()),*])
    };
    ($($other:tt)*) => {
        ::core::compile_error! {
            "expected the names of tools\nhelp: write `tools![look_up, shelf::list]`; a value with a `#[toolset]` is added as it is"
        }
    };
}

/// Registers a tool at link time; generated code calls it.
#[cfg(feature = "linked")]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($tool:expr) => {
        $crate::__private::inventory::submit! { $crate::Registration::new($tool) }
    };
}

/// Without the feature `linked` nothing is registered.
#[cfg(not(feature = "linked"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($tool:expr) => {};
}
