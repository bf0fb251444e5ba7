//! Expansions of whole tools, and the errors of wrong ones.

use expect_test::{Expect, expect};
use proc_macro2::TokenStream;
use quote::quote;

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "tests read better")]
#[track_caller]
fn check(attribute: TokenStream, item: TokenStream, expected: Expect) {
    let expanded = expand(attribute, item);
    let file = syn::parse2(expanded).unwrap();
    expected.assert_eq(&prettyplease::unparse(&file));
}

/// The first lines of all complaints about a tool.
fn complaints(attribute: &str, item: &str) -> Vec<String> {
    let function: Function = syn::parse_str(item).unwrap();
    let mut diag = Diagnostics::default();
    let items = attr::parse(attribute.parse().unwrap(), &mut diag);
    let tool = lower::tool(&items, &function, &Site::Free, &mut diag);
    assert_eq!(tool.is_none(), !diag.is_empty());
    let first = |message: String| message.lines().next().unwrap_or_default().to_owned();
    diag.messages().into_iter().map(first).collect()
}

/// Checks complaints about the attribute of a tool that is good otherwise.
#[track_caller]
fn check_attribute(attribute: &str, expected: &[&str]) {
    let item = "
        /// Does things.
        async fn act(
            /// A path.
            path: String,
            /// A secret.
            #[arg(sensitive)] token: Option<String>,
            cx: &Context,
        ) -> String {}";
    assert_eq!(complaints(attribute, item), expected, "{attribute}");
}

/// Checks complaints about one parameter of a tool that is good otherwise.
#[track_caller]
fn check_param(param: &str, expected: &[&str]) {
    let item = format!("/** Does things. */ async fn act({param}) {{}}");
    assert_eq!(complaints("read", &item), expected, "{param}");
}

#[test]
fn a_plain_tool() {
    check(
        quote!(read, display(primary = path, summary = "Reading {path}"), aliases("read")),
        quote! {
            /// Read a text file.
            ///
            /// Or a range of its lines.
            pub async fn read_file(
                /// Path.
                path: String,
                /// First line.
                #[arg(default = 1, range = 1..)]
                offset: u32,
                /// How.
                #[arg(default = Mode::Fast, rename = "readMode")]
                mode: Mode,
                /// Label.
                label: &str,
                cx: &Context,
                db: State<Db>,
            ) -> Result<Output, ToolError> {
                body
            }
        },
        expect![[r#"
            /// Read a text file.
            ///
            /// Or a range of its lines.
            pub async fn read_file(
                path: String,
                offset: u32,
                mode: Mode,
                label: &str,
                cx: &Context,
                db: State<Db>,
            ) -> Result<Output, ToolError> {
                body
            }
            #[doc(hidden)]
            pub struct read_file {
                _private: (),
            }
            /// Arguments of `read_file`.
            #[non_exhaustive]
            pub struct ReadFileArgs {
                /// Path.
                pub path: String,
                /// First line.
                pub offset: u32,
                /// How.
                pub mode: Mode,
                /// Label.
                pub label: ::tool_sdk::__private::String,
            }
            const _: () = {
                use ::tool_sdk::__private as __rt;
                const __T0: __rt::ParamType<String> = __rt::param_type::<String>();
                const __T1: __rt::ParamType<u32> = __rt::param_type::<u32>();
                const __T2: __rt::ParamType<Mode> = __rt::param_type::<Mode>();
                fn __default2() -> Mode {
                    Mode::Fast
                }
                const __T3: __rt::ParamType<::tool_sdk::__private::String> = __rt::param_type::<
                    ::tool_sdk::__private::String,
                >();
                const __OUT: __rt::OutputType<Result<Output, ToolError>> = __rt::output_type::<
                    Result<Output, ToolError>,
                >();
                const _: fn() = || {
                    fn __is_ranged<T: __rt::Ranged>() {}
                    __is_ranged::<u32>();
                };
                static __HOOKS: __rt::Hooks<ReadFileArgs> = __rt::Hooks {
                    summary: ::core::option::Option::Some(|__a| {
                        use __rt::{ViaDebug as _, ViaDisplay as _, ViaList as _, ViaOption as _};
                        ::std::format!("Reading {0}", (&& && __rt::Shown(& __a.path)).shown())
                    }),
                    ..__rt::Hooks::NONE
                };
                static __SPEC: __rt::ToolSpec = __rt::ToolSpec {
                    name: "read_file",
                    description: "Read a text file.\n\nOr a range of its lines.",
                    args: __rt::ArgsSpec::Params(
                        &[
                            __rt::ParamSpec {
                                name: "path",
                                description: "Path.",
                                ty: __T0.facts(),
                                ..__rt::ParamSpec::DEFAULT
                            },
                            __rt::ParamSpec {
                                name: "offset",
                                description: "First line.",
                                ty: __T1.facts(),
                                default: ::core::option::Option::Some(__rt::DefaultSpec::Json("1")),
                                range: ::core::option::Option::Some(
                                    __rt::Range::Int(
                                        ::core::option::Option::Some(1),
                                        ::core::option::Option::None,
                                    ),
                                ),
                                ..__rt::ParamSpec::DEFAULT
                            },
                            __rt::ParamSpec {
                                name: "readMode",
                                description: "How.",
                                ty: __T2.facts(),
                                default: ::core::option::Option::Some(
                                    __rt::DefaultSpec::Value(|| ::core::result::Result::unwrap_or(
                                        __rt::to_value::<Mode>(__default2()),
                                        __rt::Value::Null,
                                    )),
                                ),
                                ..__rt::ParamSpec::DEFAULT
                            },
                            __rt::ParamSpec {
                                name: "label",
                                description: "Label.",
                                ty: __T3.facts(),
                                ..__rt::ParamSpec::DEFAULT
                            },
                        ],
                    ),
                    output: __OUT.schema,
                    place: __rt::Place {
                        package: ::core::env!("CARGO_PKG_NAME"),
                        version: ::core::env!("CARGO_PKG_VERSION"),
                        file: ::core::file!(),
                        line: ::core::line!(),
                    },
                    aliases: &["read"],
                    risk: __rt::Risk::new(__rt::RiskClass::Read),
                    primary: ::core::option::Option::Some("path"),
                    summary: ::core::option::Option::Some("Reading {path}"),
                    ..__rt::ToolSpec::DEFAULT
                };
                static __TABLE: __rt::Table = __rt::Table::new(&__SPEC);
                fn __prepare(
                    __raw: &__rt::RawArgs<'_>,
                ) -> ::core::result::Result<__rt::Box<dyn __rt::Prepared>, __rt::InvalidArgs> {
                    let mut __0 = ::core::option::Option::None;
                    let mut __1 = ::core::option::Option::None;
                    let mut __2 = ::core::option::Option::None;
                    let mut __3 = ::core::option::Option::None;
                    let __notes = __rt::take(
                        &__TABLE,
                        __raw,
                        &mut [
                            &mut __T0.slot(&mut __0),
                            &mut __T1.slot(&mut __1),
                            &mut __T2.slot(&mut __2),
                            &mut __T3.slot(&mut __3),
                        ],
                    )?;
                    ::core::result::Result::Ok(
                        __rt::stage(
                            ReadFileArgs {
                                path: __rt::filled(__0),
                                offset: match __1 {
                                    ::core::option::Option::None => 1,
                                    ::core::option::Option::Some(__value) => __value,
                                },
                                mode: match __2 {
                                    ::core::option::Option::None => __default2(),
                                    ::core::option::Option::Some(__value) => __value,
                                },
                                label: __rt::filled(__3),
                            },
                            __notes,
                            &__HOOKS,
                            |__args, __cx| async move {
                                (__OUT
                                    .convert)(
                                    read_file(
                                            __args.path,
                                            __args.offset,
                                            __args.mode,
                                            &*__args.label,
                                            <Context as __rt::FromContextRef>::from_context_ref(&__cx),
                                            match <State<
                                                Db,
                                            > as __rt::FromContext>::from_context(&__cx) {
                                                ::core::result::Result::Ok(__value) => __value,
                                                ::core::result::Result::Err(__error) => {
                                                    return ::core::result::Result::Err(__error);
                                                }
                                            },
                                        )
                                        .await,
                                )
                            },
                        ),
                    )
                }
                static __TOOL: __rt::FnTool = __rt::FnTool::new(&__TABLE, __prepare);
                #[automatically_derived]
                impl __rt::ToolFn for read_file {
                    fn tool() -> &'static __rt::FnTool {
                        &__TOOL
                    }
                }
                ::tool_sdk::__submit! {
                    & __TOOL
                }
                #[unsafe(export_name = "__tool_sdk_duplicate_tool____read_file")]
                #[used]
                static __GUARD0: u8 = 0;
                #[unsafe(export_name = "__tool_sdk_duplicate_tool____read")]
                #[used]
                static __GUARD1: u8 = 0;
            };
        "#]],
    );
}

#[test]
fn all_items() {
    check(
        quote!(
            write,
            destructive,
            idempotent,
            name = "do-it",
            title = "Do it",
            category = "misc",
            description = TEXT,
            example = r#"{"path": "a"}"#,
            permission = "edit",
            approval(required = |a, _| a.path.len() > 3, subjects = subjects),
            display(name = "Do", show(path, r#type), result = shown),
            timeout = "2m",
            max_output = "64 KiB",
            truncate = tail,
            parallel = by(path),
            scopes("oracle"),
            requires_auth,
            experimental,
            init = refine,
            register = false,
            crate = renamed
        ),
        quote! {
            #[cfg(unix)]
            #[allow(dead_code)]
            pub(crate) fn act(
                /// Path.
                #[arg(length = 1..=MAX, pattern = "^[a-z]+$", alias("file"))]
                path: String,
                /// Kind.
                #[arg(default = "a", choices("a", "b"), hidden)]
                r#type: Option<&str>,
                /// Ratio.
                #[arg(default = HALF, range = 0.0..=1.0)]
                ratio: f64,
            ) {}
        },
        expect![[r##"
            #[cfg(unix)]
            #[allow(dead_code)]
            pub(crate) fn act(path: String, r#type: Option<&str>, ratio: f64) {}
            #[cfg(unix)]
            #[doc(hidden)]
            pub(crate) struct act {
                _private: (),
            }
            #[cfg(unix)]
            /// Arguments of `do-it`.
            #[non_exhaustive]
            pub(crate) struct ActArgs {
                /// Path.
                pub path: String,
                /// Kind.
                pub r#type: ::core::option::Option<::renamed::__private::String>,
                /// Ratio.
                pub ratio: f64,
            }
            #[cfg(unix)]
            const _: () = {
                use ::renamed::__private as __rt;
                const __T0: __rt::ParamType<String> = __rt::param_type::<String>();
                const __T1: __rt::ParamType<::core::option::Option<::renamed::__private::String>> = __rt::param_type::<
                    ::core::option::Option<::renamed::__private::String>,
                >();
                const __T2: __rt::ParamType<f64> = __rt::param_type::<f64>();
                fn __default2() -> f64 {
                    HALF
                }
                const __OUT: __rt::OutputType<()> = __rt::output_type::<()>();
                const _: fn() = || {
                    fn __is_ranged<T: __rt::Ranged>() {}
                    __is_ranged::<f64>();
                    fn __is_lengthy<T: __rt::Lengthy>() {}
                    __is_lengthy::<String>();
                    fn __is_patterned<T: __rt::Patterned>() {}
                    __is_patterned::<String>();
                    __is_patterned::<::core::option::Option<::renamed::__private::String>>();
                };
                const _: () = ::core::assert!(
                    0.0 <= (HALF as f64) && (HALF as f64) <= 1.0, "default must be in its range"
                );
                static __HOOKS: __rt::Hooks<ActArgs> = __rt::Hooks {
                    required: ::core::option::Option::Some(|a, _| a.path.len() > 3),
                    subjects: ::core::option::Option::Some(subjects),
                    result: ::core::option::Option::Some(shown),
                    key: ::core::option::Option::Some(|__a| {
                        use __rt::{ViaDebug as _, ViaDisplay as _, ViaList as _, ViaOption as _};
                        (&&&&__rt::Shown(&__a.path)).shown()
                    }),
                    ..__rt::Hooks::NONE
                };
                static __SPEC: __rt::ToolSpec = __rt::ToolSpec {
                    name: "do-it",
                    description: TEXT,
                    args: __rt::ArgsSpec::Params(
                        &[
                            __rt::ParamSpec {
                                name: "path",
                                description: "Path.",
                                ty: __T0.facts(),
                                aliases: &["file"],
                                length: ::core::option::Option::Some((1, MAX)),
                                pattern: ::core::option::Option::Some("^[a-z]+$"),
                                ..__rt::ParamSpec::DEFAULT
                            },
                            __rt::ParamSpec {
                                name: "type",
                                description: "Kind.",
                                ty: __T1.facts(),
                                default: ::core::option::Option::Some(
                                    __rt::DefaultSpec::Json("\"a\""),
                                ),
                                choices: &["a", "b"],
                                hidden: true,
                                ..__rt::ParamSpec::DEFAULT
                            },
                            __rt::ParamSpec {
                                name: "ratio",
                                description: "Ratio.",
                                ty: __T2.facts(),
                                default: ::core::option::Option::Some(
                                    __rt::DefaultSpec::Value(|| ::core::result::Result::unwrap_or(
                                        __rt::to_value::<f64>(__default2()),
                                        __rt::Value::Null,
                                    )),
                                ),
                                range: ::core::option::Option::Some(
                                    __rt::Range::Float(
                                        ::core::option::Option::Some(0.0),
                                        ::core::option::Option::Some(1.0),
                                    ),
                                ),
                                ..__rt::ParamSpec::DEFAULT
                            },
                        ],
                    ),
                    output: __OUT.schema,
                    place: __rt::Place {
                        package: ::core::env!("CARGO_PKG_NAME"),
                        version: ::core::env!("CARGO_PKG_VERSION"),
                        file: ::core::file!(),
                        line: ::core::line!(),
                    },
                    title: ::core::option::Option::Some("Do it"),
                    category: ::core::option::Option::Some("misc"),
                    risk: __rt::Risk::new(__rt::RiskClass::Write).destructive().idempotent(),
                    permission: ::core::option::Option::Some("edit"),
                    display_name: ::core::option::Option::Some("Do"),
                    show: &["path", "type"],
                    scopes: &["oracle"],
                    timeout: ::core::option::Option::Some(__rt::Duration::from_millis(120000u64)),
                    max_output: ::core::option::Option::Some(65536),
                    truncate: ::core::option::Option::Some(__rt::Truncate::Tail),
                    parallel: ::core::option::Option::Some(
                        __rt::Parallel::By(::std::borrow::Cow::Borrowed("path")),
                    ),
                    flags: {
                        let mut __flags = __rt::ToolSpec::DEFAULT.flags;
                        __flags.requires_auth = true;
                        __flags.experimental = true;
                        __flags
                    },
                    examples: &["{\"path\": \"a\"}"],
                    init: ::core::option::Option::Some(refine),
                    ..__rt::ToolSpec::DEFAULT
                };
                static __TABLE: __rt::Table = __rt::Table::new(&__SPEC);
                fn __prepare(
                    __raw: &__rt::RawArgs<'_>,
                ) -> ::core::result::Result<__rt::Box<dyn __rt::Prepared>, __rt::InvalidArgs> {
                    let mut __0 = ::core::option::Option::None;
                    let mut __1 = ::core::option::Option::None;
                    let mut __2 = ::core::option::Option::None;
                    let __notes = __rt::take(
                        &__TABLE,
                        __raw,
                        &mut [
                            &mut __T0.slot(&mut __0),
                            &mut __T1.slot(&mut __1),
                            &mut __T2.slot(&mut __2),
                        ],
                    )?;
                    ::core::result::Result::Ok(
                        __rt::stage(
                            ActArgs {
                                path: __rt::filled(__0),
                                r#type: match __1 {
                                    ::core::option::Option::None => {
                                        ::core::option::Option::Some(
                                            ::core::convert::From::from("a"),
                                        )
                                    }
                                    ::core::option::Option::Some(__value) => __value,
                                },
                                ratio: match __2 {
                                    ::core::option::Option::None => __default2(),
                                    ::core::option::Option::Some(__value) => __value,
                                },
                            },
                            __notes,
                            &__HOOKS,
                            |__args, __cx| async move {
                                (__OUT
                                    .convert)(
                                    act(
                                        __args.path,
                                        ::core::option::Option::as_deref(&__args.r#type),
                                        __args.ratio,
                                    ),
                                )
                            },
                        ),
                    )
                }
                static __TOOL: __rt::FnTool = __rt::FnTool::new(&__TABLE, __prepare);
                #[automatically_derived]
                impl __rt::ToolFn for act {
                    fn tool() -> &'static __rt::FnTool {
                        &__TOOL
                    }
                }
            };
        "##]],
    );
}

#[test]
fn a_struct_of_arguments() {
    check(
        quote!(display(primary = query, summary = "Searching {query}"), register = false),
        quote! {
            /// Search.
            async fn search(Args(args): Args<Search>) -> String {}
        },
        expect![[r#"
            /// Search.
            async fn search(Args(args): Args<Search>) -> String {}
            #[doc(hidden)]
            struct search {
                _private: (),
            }
            const _: () = {
                use ::tool_sdk::__private as __rt;
                const __T0: __rt::StructType<Search> = __rt::struct_type::<Search>();
                const __OUT: __rt::OutputType<String> = __rt::output_type::<String>();
                const _: fn(&Search) = |__a| {
                    let _ = &__a.query;
                };
                static __HOOKS: __rt::Hooks<Search> = __rt::Hooks {
                    summary: ::core::option::Option::Some(|__a| {
                        use __rt::{ViaDebug as _, ViaDisplay as _, ViaList as _, ViaOption as _};
                        ::std::format!("Searching {0}", (&& && __rt::Shown(& __a.query)).shown())
                    }),
                    ..__rt::Hooks::NONE
                };
                static __SPEC: __rt::ToolSpec = __rt::ToolSpec {
                    name: "search",
                    description: "Search.",
                    args: __rt::ArgsSpec::Struct(__T0.schema()),
                    output: __OUT.schema,
                    place: __rt::Place {
                        package: ::core::env!("CARGO_PKG_NAME"),
                        version: ::core::env!("CARGO_PKG_VERSION"),
                        file: ::core::file!(),
                        line: ::core::line!(),
                    },
                    primary: ::core::option::Option::Some("query"),
                    summary: ::core::option::Option::Some("Searching {query}"),
                    ..__rt::ToolSpec::DEFAULT
                };
                static __TABLE: __rt::Table = __rt::Table::new(&__SPEC);
                fn __prepare(
                    __raw: &__rt::RawArgs<'_>,
                ) -> ::core::result::Result<__rt::Box<dyn __rt::Prepared>, __rt::InvalidArgs> {
                    let (__args, __notes) = __rt::take_struct(&__TABLE, __raw, &__T0)?;
                    ::core::result::Result::Ok(
                        __rt::stage(
                            __args,
                            __notes,
                            &__HOOKS,
                            |__args, __cx| async move {
                                (__OUT.convert)(search(__rt::Args(__args)).await)
                            },
                        ),
                    )
                }
                static __TOOL: __rt::FnTool = __rt::FnTool::new(&__TABLE, __prepare);
                #[automatically_derived]
                impl __rt::ToolFn for search {
                    fn tool() -> &'static __rt::FnTool {
                        &__TOOL
                    }
                }
            };
        "#]],
    );
}

#[test]
fn a_tool_with_mistakes_is_inert() {
    check(
        quote!(raed, timeout = "10"),
        quote! {
            pub async fn act(path: &str, (a, b): (u8, u8), #[arg(range = 5..=1)] n: u32) -> String {
                body
            }
        },
        expect![[r#"
            ::core::compile_error! {
                "unknown item `raed` in `#[tool]`\nhelp: did you mean `read`?"
            }
            ::core::compile_error! {
                "parameter `path` has no description\nhelp: add a `///` comment above it; the model reads it"
            }
            ::core::compile_error! {
                "parameter must be a plain name\nhelp: name it, and take it apart in the body"
            }
            ::core::compile_error! {
                "`range` must not be empty\nhelp: write the smaller number first"
            }
            ::core::compile_error! {
                "parameter `n` has no description\nhelp: add a `///` comment above it; the model reads it"
            }
            ::core::compile_error! {
                "tool `act` has no description\nhelp: add a `///` comment that tells the model when to use it"
            }
            ::core::compile_error! {
                "`timeout` must be a time with its unit\nhelp: write `500ms`, `10s`, `2m` or `1h`"
            }
            pub async fn act(path: &str, (a, b): (u8, u8), n: u32) -> String {
                body
            }
            #[doc(hidden)]
            pub struct act {
                _private: (),
            }
            #[doc(hidden)]
            pub struct ActArgs {
                #[doc(hidden)]
                pub path: ::tool_sdk::__private::String,
                #[doc(hidden)]
                pub n: u32,
            }
            const _: () = {
                use ::tool_sdk::__private as __rt;
                static __SPEC: __rt::ToolSpec = __rt::ToolSpec::DEFAULT;
                static __TABLE: __rt::Table = __rt::Table::new(&__SPEC);
                static __TOOL: __rt::FnTool = __rt::FnTool::new(
                    &__TABLE,
                    |_| ::core::unreachable!(),
                );
                #[automatically_derived]
                impl __rt::ToolFn for act {
                    fn tool() -> &'static __rt::FnTool {
                        &__TOOL
                    }
                }
            };
        "#]],
    );
}

#[test]
fn what_is_no_function_stays() {
    check(
        quote!(),
        quote!(
            struct NoTool;
        ),
        expect![[r#"
        ::core::compile_error! {
            "`#[tool]` must be on a function\nhelp: put it on an `async fn`"
        }
        struct NoTool;
    "#]],
    );
}

#[test]
fn unknown_and_repeated_items() {
    check_attribute("raed", &["unknown item `raed` in `#[tool]`"]);
    check_attribute("read, read", &["duplicate `read`"]);
    check_attribute("display(shw(path))", &["unknown item `shw` in `display`"]);
    check_attribute("approval(needed = f)", &["unknown item `needed` in `approval`"]);
    check_attribute(
        "timeout = , raed",
        &["`timeout` has no value", "unknown item `raed` in `#[tool]`"],
    );
    check_attribute(
        "example = { 1: 2 }, raed",
        &[
            "value of `example` must be an expression: unexpected token, expected `;`",
            "unknown item `raed` in `#[tool]`",
        ],
    );
    check_attribute("\"read\"", &["expected the name of an item"]);
    check_attribute("read write", &["expected `,`"]);
}

#[test]
fn items_have_one_shape() {
    check_attribute("read = true", &["`read` must stand alone"]);
    check_attribute("timeout", &["`timeout` must have a value"]);
    check_attribute("aliases = \"a\"", &["`aliases` must have a list"]);
    check_attribute("aliases()", &["`aliases` has no values"]);
    check_attribute("aliases(a)", &["`aliases` must hold string literals"]);
    check_attribute("title = TITLE", &["`title` must be a string literal"]);
    check_attribute("register = maybe", &["`register` must be `true` or `false`"]);
    check_attribute("crate = 1", &["`crate` must be the path of the runtime crate"]);
}

#[test]
fn contradictions() {
    check_attribute("read, write", &["`write` contradicts `read`"]);
    check_attribute("read, destructive", &["`destructive` contradicts `read`"]);
    check_attribute("destructive", &[]);
}

#[test]
fn names() {
    const RULE: &str = "must be 1 to 64 of A-Z a-z 0-9 _ -, starting with a letter or _";
    check_attribute("name = \"a b\"", &[&format!("name `a b` {RULE}")]);
    check_attribute("aliases(\"1\")", &[&format!("name `1` {RULE}")]);
    check_attribute(
        "aliases(\"Act\", \"b\", \"B\")",
        &[
            "duplicate `Act`, which is the name of the tool; case does not count",
            "duplicate `B`, which is another alias; case does not count",
        ],
    );
    assert_eq!(complaints("", "/** D. */ fn größe() {}"), [format!("name `größe` {RULE}")]);
}

#[test]
fn values_of_items() {
    check_attribute("timeout = \"10\"", &["`timeout` must be a time with its unit"]);
    check_attribute("timeout = \"0s\"", &["`0s` must be above zero"]);
    check_attribute("max_output = \"big\"", &["`max_output` must be a size in bytes"]);
    check_attribute("truncate = up", &["expected `head`, `tail`, `middle` or `none`"]);
    check_attribute("parallel = any", &["expected `shared`, `exclusive` or `by(parameter)`"]);
    check_attribute("description = \" \"", &["`description` must not be empty"]);
}

#[test]
fn what_is_shown_must_be_sent_and_not_secret() {
    check_attribute("display(primary = paht)", &["unknown parameter `paht` in `primary`"]);
    check_attribute(
        "display(show(path, path, cx))",
        &["duplicate `path` in `show`", "`cx` in `show` must be a parameter that the model sends"],
    );
    check_attribute(
        "display(summary = \"{token} {paht:>5}\")",
        &[
            "sensitive parameter `token` must not be in `summary`",
            "unknown parameter `paht` in `summary`",
        ],
    );
    check_attribute("display(summary = \"{}\")", &["`summary` must name a parameter in `{}`"]);
    check_attribute("parallel = by(nothing)", &["unknown parameter `nothing` in `parallel`"]);
    check_attribute("display(primary = \"path\")", &["`primary` must be the name of a parameter"]);
}

#[test]
fn examples_fit_the_parameters() {
    check_attribute("example = r#\"{\"path\": \"a\"}\"#", &[]);
    check_attribute("example = \"[]\"", &["`example` must be a JSON object"]);
    check_attribute("example = \"{}\"", &["`example` has no `path`, which is required"]);
    check_attribute("example = r#\"{\"paht\": 1}\"#", &["unknown argument `paht` in `example`"]);
}

#[test]
fn signatures() {
    let check = |item: &str, expected: &[&str]| {
        assert_eq!(complaints("", &format!("/** D. */ {item}")), expected, "{item}");
    };
    check("unsafe fn f() {}", &["tool must not be unsafe"]);
    check("extern \"C\" fn f() {}", &["tool must not be `extern`"]);
    check("fn f<T>() {}", &["tool must not be generic"]);
    check("fn f<'a>() {}", &["tool must not be generic"]);
    check("fn f(&self) {}", &["tool must not take `self`"]);
    check("fn f() -> impl Sized {}", &["result of a tool must not be `impl Trait`"]);
    check("#[tool] fn f() {}", &["duplicate `#[tool]`"]);
    assert_eq!(complaints("", "fn f() {}"), ["tool `f` has no description"]);
}

#[test]
fn forms_of_parameters() {
    check_param("x: u8", &["parameter `x` has no description"]);
    check_param(
        "#[arg(hidden)] x: u8",
        &["hidden parameter `x` has no default", "parameter `x` has no description"],
    );
    check_param("/** X. */ (a, b): (u8, u8)", &["parameter must be a plain name"]);
    check_param("/** X. */ x: &mut u8", &["type of parameter `x` must not be `&mut`"]);
    check_param("/** X. */ x: impl Sized", &["type of parameter `x` must not be `impl Trait`"]);
    check_param("/** X. */ x: &'static str", &["type of parameter `x` must not have a lifetime"]);
    check_param("/** X. */ #[cfg(unix)] x: u8", &["parameter `x` must not be conditional"]);
    check_param(
        "#[arg(hidden)] cx: &Context",
        &["`#[arg]` must not be on `cx`, which the model does not send"],
    );
    check_param(
        "args: Args<T>, /** X. */ x: u8",
        &["`Args` must be the only parameter that the model sends"],
    );
    check_param(
        "/** X. */ x: u8, args: Args<T>",
        &["`Args` must be the only parameter that the model sends"],
    );
}

#[test]
fn names_of_arguments() {
    check_param(
        "/** X. */ #[arg(rename = \"a b\")] x: u8",
        &["argument `a b` must be named with 1 to 64 of A-Z a-z 0-9 _ - ."],
    );
    check_param(
        "/** X. */ #[arg(alias(\"y\"))] x: u8, /** Y. */ y: u8",
        &["duplicate argument `y`"],
    );
    check_param("/** X. */ #[arg(alias(\"y\"), alias(\"y\"))] x: u8", &["duplicate argument `y`"]);
}

#[test]
fn constraints() {
    let check = |arg: &str, ty: &str, expected: &[&str]| {
        check_param(&format!("/** X. */ #[arg({arg})] x: {ty}"), expected);
    };
    check("range = 5", "u8", &["`range` must have bounds"]);
    check("range = ..", "u8", &["`range` must have bounds"]);
    check("range = 5..=1", "u8", &["`range` must not be empty"]);
    check("range = 1..1", "u8", &["`range` must not be empty"]);
    check("range = 0.0..1.0", "f64", &["`range` of floats must include its end"]);
    check("range = 0.5..=1.0", "Option<u8>", &["`range` of whole numbers must have whole bounds"]);
    check("range = 1..=f(2)", "u8", &["bound of `range` must be a number or a constant"]);
    check("range = -5..=MAX", "i8", &[]);
    check("length = 5..=1", "String", &["`length` must not be empty"]);
    check("length = -1..", "String", &["bound of `length` must be a whole number from 0"]);
    check("pattern = \"(\"", "String", &["`pattern` must be a regular expression: unclosed group"]);
    check("choices(\"a\", \"a\")", "String", &["duplicate choice `a`"]);
    check("defualt = 1", "u8", &["unknown item `defualt` in `#[arg]`"]);
}

#[test]
fn defaults_keep_to_the_constraints() {
    let check = |arg: &str, ty: &str, expected: &[&str]| {
        check_param(&format!("/** X. */ #[arg({arg})] x: {ty}"), expected);
    };
    check("default = 0, range = 1..", "u8", &["default 0 must be in its range"]);
    check("default = -1, range = 0..=9", "i8", &["default -1 must be in its range"]);
    check("default = 1.5, range = 0.0..=1.0", "f64", &["default 1.5 must be in its range"]);
    check("default = Some(9), range = ..9", "Option<u8>", &["default 9 must be in its range"]);
    check(
        "default = \"A\", pattern = \"^[a-z]\"",
        "String",
        &["default \"A\" must match its pattern"],
    );
    check(
        "default = \"c\", choices(\"a\", \"b\")",
        "&str",
        &["default \"c\" must be one of its choices"],
    );
    check(
        "default = \"\", length = 1..",
        "String",
        &["default \"\" must have the length that it requires"],
    );
    check("default = LIMIT, range = 1..=MAX", "u8", &[]);
}
