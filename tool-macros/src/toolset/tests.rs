//! Expansions of whole toolsets, and the errors of wrong ones.

use expect_test::{Expect, expect};
use proc_macro2::TokenStream;
use quote::quote;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "tests read better")]
#[track_caller]
fn check(item: TokenStream, expected: Expect) {
    let expanded = expand_toolset(TokenStream::new(), item);
    let file = syn::parse2(expanded).unwrap();
    expected.assert_eq(&prettyplease::unparse(&file));
}

#[track_caller]
fn check_errors(item: &str, expected: &[&str]) {
    let block: ToolsetBlock = syn::parse_str(item).unwrap();
    let mut diag = Diagnostics::default();
    assert!(lower::lower_toolset(&[], &block, &mut diag).is_none());
    let messages = diag.messages();
    let first: Vec<&str> = messages.iter().filter_map(|message| message.lines().next()).collect();
    assert_eq!(first, expected, "{item}");
}

#[test]
fn methods_become_tools_on_a_shared_value() {
    check(
        quote! {
            #[cfg(unix)]
            impl Tracker {
                const LIMIT: u32 = 5;

                /// Create an issue.
                #[tool(write)]
                pub async fn create(
                    &self,
                    /// Title.
                    title: String,
                    /// Weight.
                    #[arg(default = Self::LIMIT)]
                    weight: u32,
                ) -> Result<String, ToolError> {
                    body
                }

                /// Count issues.
                #[cfg(feature = "count")]
                #[tool(read)]
                fn count(&self, cx: &Context) -> Json<Self> {}

                fn helper(&self) -> u8 {
                    7
                }
            }
        },
        expect![[r##"
            #[cfg(unix)]
            impl Tracker {
                const LIMIT: u32 = 5;
                /// Create an issue.
                pub async fn create(&self, title: String, weight: u32) -> Result<String, ToolError> {
                    body
                }
                /// Count issues.
                #[cfg(feature = "count")]
                fn count(&self, cx: &Context) -> Json<Self> {}
                fn helper(&self) -> u8 {
                    7
                }
            }
            #[cfg(unix)]
            const _: () = {
                use ::tool_sdk::__private as __rt;
                #[automatically_derived]
                impl __rt::ToolMethods for Tracker
                where
                    Tracker: ::core::marker::Send + ::core::marker::Sync,
                {
                    fn tools(__this: &__rt::Arc<Self>) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                        ::core::convert::From::from([
                            {
                                const __OUT: __rt::OutputType<Result<String, ToolError>> = {
                                    use __rt::OtherConversion as _;
                                    __rt::ResultType::<Result<String, ToolError>>::CONVERSION
                                        .or(__rt::ErrorType::<Result<String, ToolError>>::CONVERSION)
                                        .output_type::<Result<String, ToolError>>()
                                };
                                fn __default1() -> u32 {
                                    <Tracker>::LIMIT
                                }
                                const __SPEC: __rt::ToolSpec = __rt::ToolSpec {
                                    name: "create",
                                    description: "Create an issue.",
                                    risk: __rt::Risk::new(__rt::RiskClass::Write),
                                    args: __rt::ArgsSpec::Params(
                                        &[
                                            __rt::ParamSpec {
                                                name: "title",
                                                description: "Title.",
                                                ty: <String as __rt::Param>::FACTS,
                                                default: __rt::None,
                                                options: __rt::ParamOptions::NONE,
                                            },
                                            __rt::ParamSpec {
                                                name: "weight",
                                                description: "Weight.",
                                                ty: <u32 as __rt::Param>::FACTS,
                                                default: __rt::Some(
                                                    __rt::DefaultSpec::Value(|| __rt::default_value::<
                                                        u32,
                                                    >(__default1())),
                                                ),
                                                options: __rt::ParamOptions::NONE,
                                            },
                                        ],
                                    ),
                                    output: __OUT.schema,
                                    place: __rt::SourceLocation {
                                        package: ::core::env!("CARGO_PKG_NAME"),
                                        version: ::core::env!("CARGO_PKG_VERSION"),
                                        file: ::core::file!(),
                                        line: ::core::line!(),
                                    },
                                    options: __rt::ToolOptions::NONE,
                                };
                                static __TABLE: __rt::Table = __rt::Table::new(__SPEC);
                                __rt::MethodTool::shared(
                                    &__TABLE,
                                    __this,
                                    |__table, __raw, __this| {
                                        let mut __0 = __rt::None;
                                        let mut __1 = __rt::None;
                                        let __notes = __rt::take(
                                            __table,
                                            __raw,
                                            &mut [&mut __0, &mut __1],
                                        )?;
                                        let __0: String = __rt::filled(__0);
                                        let __1: u32 = match __1 {
                                            __rt::None => __default1(),
                                            __rt::Some(__value) => __value,
                                        };
                                        let __this = ::core::clone::Clone::clone(__this);
                                        __rt::Ok(
                                            __rt::stage(
                                                __notes,
                                                __OUT.convert,
                                                async move { <Tracker>::create(&__this, __0, __1).await },
                                            ),
                                        )
                                    },
                                )
                            },
                            #[cfg(feature = "count")]
                            {
                                const __OUT: __rt::OutputType<Json<Tracker>> = {
                                    use __rt::OtherConversion as _;
                                    __rt::ResultType::<Json<Tracker>>::CONVERSION
                                        .or(__rt::ErrorType::<Json<Tracker>>::CONVERSION)
                                        .output_type::<Json<Tracker>>()
                                };
                                const __SPEC: __rt::ToolSpec = __rt::ToolSpec {
                                    name: "count",
                                    description: "Count issues.",
                                    risk: __rt::Risk::new(__rt::RiskClass::Read),
                                    args: __rt::ArgsSpec::Params(&[]),
                                    output: __OUT.schema,
                                    place: __rt::SourceLocation {
                                        package: ::core::env!("CARGO_PKG_NAME"),
                                        version: ::core::env!("CARGO_PKG_VERSION"),
                                        file: ::core::file!(),
                                        line: ::core::line!(),
                                    },
                                    options: __rt::ToolOptions::NONE,
                                };
                                static __TABLE: __rt::Table = __rt::Table::new(__SPEC);
                                __rt::MethodTool::shared(
                                    &__TABLE,
                                    __this,
                                    |__table, __raw, __this| {
                                        let __notes = __rt::take(__table, __raw, &mut [])?;
                                        let __this = ::core::clone::Clone::clone(__this);
                                        __rt::Ok(
                                            __rt::stage_in(
                                                __notes,
                                                move |__cx| async move {
                                                    (__OUT
                                                        .convert)(
                                                        <Tracker>::count(
                                                            &__this,
                                                            <Context as __rt::FromContextRef>::from_context_ref(&__cx),
                                                        ),
                                                    )
                                                },
                                            ),
                                        )
                                    },
                                )
                            },
                        ])
                    }
                }
                #[automatically_derived]
                impl __rt::IntoTools for Tracker {
                    fn into_tools(self) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                        use __rt::{ViaMethods as _, ViaNothing as _};
                        __rt::AutorefTools(self).tools()
                    }
                }
            };
        "##]],
    );
}

#[test]
fn a_toolset_with_mistakes_is_inert() {
    check(
        quote! {
            impl Tracker {
                /// Create an issue.
                #[tool(wirte)]
                async fn create(&self, title: String) {}
            }
        },
        expect![[r#"
            ::core::compile_error! {
                "unknown item `wirte` in `#[tool]`\nhelp: did you mean `write`?"
            }
            ::core::compile_error! {
                "parameter `title` has no description\nhelp: add a `///` comment above it; the model reads it"
            }
            impl Tracker {
                /// Create an issue.
                async fn create(&self, title: String) {}
            }
            const _: () = {
                use ::tool_sdk::__private as __rt;
                #[automatically_derived]
                impl __rt::ToolMethods for Tracker
                where
                    Tracker: ::core::marker::Send + ::core::marker::Sync,
                {
                    fn tools(__this: &__rt::Arc<Self>) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                        __rt::Vec::new()
                    }
                }
                #[automatically_derived]
                impl __rt::IntoTools for Tracker {
                    fn into_tools(self) -> __rt::Vec<__rt::Arc<dyn __rt::Tool>> {
                        __rt::Vec::new()
                    }
                }
            };
        "#]],
    );
}

#[test]
fn blocks() {
    let tool = "/** D. */ #[tool] fn f(&self) {}";
    check_errors(
        &format!("impl T for X {{ {tool} }}"),
        &["`#[toolset]` must not be on the implementation of a trait"],
    );
    check_errors(&format!("impl<T> X<T> {{ {tool} }}"), &["toolset must not be generic"]);
    check_errors(&format!("impl [u8] {{ {tool} }}"), &["type of a toolset must be a path"]);
    check_errors("impl X { fn f() {} }", &["toolset has no tools"]);
}

#[test]
fn methods() {
    let check = |method: &str, expected: &[&str]| {
        check_errors(&format!("impl X {{ /** D. */ #[tool] {method} }}"), expected);
    };
    check("fn f() {}", &["method `f` must take `&self`"]);
    check("fn f(self) {}", &["method of a toolset must not take `self`"]);
    check("fn f(&mut self) {}", &["method of a toolset must not take `&mut self`"]);
    check("fn f(self: &Arc<Self>) {}", &["method of a toolset must take `&self`"]);
    check("#[tool] fn f(&self) {}", &["duplicate `#[tool]`"]);
    check_errors(
        "impl X { /** D. */ #[tool(register = false, crate = x)] fn f(&self) {} }",
        &["`crate` must not be on a method", "`register` must not be on a method"],
    );
    check_errors(
        "impl X {
            /** D. */ #[tool] fn f(&self) {}
            /** D. */ #[tool(name = \"F\")] fn g(&self) {}
            fn h(#[arg(hidden)] x: u8) {}
        }",
        &[
            "duplicate tool `F`, which `f` is called too",
            "`#[arg]` must be in a tool, which `h` is not",
        ],
    );
}
