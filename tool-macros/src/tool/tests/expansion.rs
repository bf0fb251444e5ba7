//! What whole tools become.

use super::*;

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
                            |__args, __approved| {
                                let __cx = __approved.context();
                                async move {
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
                                }
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
                            |__args, __approved| {
                                async move {
                                    (__OUT
                                        .convert)(
                                        act(
                                            __args.path,
                                            ::core::option::Option::as_deref(&__args.r#type),
                                            __args.ratio,
                                        ),
                                    )
                                }
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
                            |__args, __approved| {
                                async move { (__OUT.convert)(search(__rt::Args(__args)).await) }
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
