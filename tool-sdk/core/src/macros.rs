//! The function-like macros.

/// Makes sure that the linker keeps the tools of a crate.
///
/// A crate that is a dependency but is not mentioned in code is not linked, so its tools are
/// missing.
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

/// Creates a list of tools from the names of their functions.
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

/// Registers a tool at link time; called by generated code.
#[cfg(feature = "linked")]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($tool:expr) => {
        $crate::__private::inventory::submit! { $crate::Registration::new($tool) }
    };
}

/// Registers nothing, without the feature `linked`.
#[cfg(not(feature = "linked"))]
#[doc(hidden)]
#[macro_export]
macro_rules! __submit {
    ($tool:expr) => {};
}
