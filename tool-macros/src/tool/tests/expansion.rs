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
            pub async fn read_page(
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
            pub async fn read_page(
                path: String,
                offset: u32,
                mode: Mode,
                label: &str,
                cx: &Context,
                db: State<Db>,
            ) -> Result<Output, ToolError> {
                body
            }
            #[::tool_sdk::__private::followed_by{const
            _:()= {use::tool_sdk::__private
            as
            __rt;pub
            enum
            __Place{}#[automatically_derived]impl
            __rt::ToolFn<__Place>for
            read_page{fn
            tool()->&'static
            __rt::FnTool{const
            __OUT:__rt::OutputType<Result<Output,
            ToolError>>= {use
            __rt::OtherConversion
            as
            _;__rt::ResultType::<Result<Output,
            ToolError>>::CONVERSION.or(
                __rt::ErrorType::<Result<Output,
                ToolError>>::CONVERSION
            ).output_type::<Result<Output,
            ToolError>>()};fn
            __default2()->Mode{Mode::Fast}const
            _:fn()= ||{fn
            __is_ranged<T:__rt::Ranged>(){}__is_ranged::<u32>();};struct
            __Args{path:String,
            offset:u32,
            mode:Mode,
            label:::std::string::String,
            }static
            __HOOKS:__rt::ToolCallbacks<__Args>= __rt::ToolCallbacks{summary:__rt::Some(
                |__a|{use
                __rt::{ViaDebug
                as
                _,
                ViaDisplay
                as
                _,
                ViaList
                as
                _,
                ViaOption
                as
                _,
                ViaPlace
                as
                _,
                };::std::format!("Reading {0}", (&&&&__rt::SummaryValue(&__a.path)).render())}
            ),
            ..__rt::ToolCallbacks::NONE};const
            __PARTS:(
                __rt::ToolSpec,
                __rt::Prepare
            )= (
                __rt::ToolSpec{name:"read_page",
                description:"Read a text file.\n\nOr a range of its lines.",
                risk:__rt::Risk::new(__rt::RiskClass::Read),
                args:__rt::ArgsSpec::Params(
                    &[__rt::ParamSpec{name:"path",
                    description:"Path.",
                    ty:<String
                    as
                    __rt::Param>::FACTS,
                    default:__rt::None,
                    options:__rt::ParamOptions::NONE,
                    },
                    __rt::ParamSpec{name:"offset",
                    description:"First line.",
                    ty:<u32
                    as
                    __rt::Param>::FACTS,
                    default:__rt::Some(__rt::DefaultSpec::Json("1")),
                    options:const{&__rt::ParamOptions{range:__rt::Some(
                        __rt::Range::Int(__rt::Some(1), __rt::None)
                    ),
                    ..__rt::ParamOptions::DEFAULT}},
                    },
                    __rt::ParamSpec{name:"readMode",
                    description:"How.",
                    ty:<Mode
                    as
                    __rt::Param>::FACTS,
                    default:__rt::Some(
                        __rt::DefaultSpec::Value(||__rt::default_value::<Mode>(__default2()))
                    ),
                    options:__rt::ParamOptions::NONE,
                    },
                    __rt::ParamSpec{name:"label",
                    description:"Label.",
                    ty:<::std::string::String
                    as
                    __rt::Param>::FACTS,
                    default:__rt::None,
                    options:__rt::ParamOptions::NONE,
                    }]
                ),
                output:__OUT.schema,
                place:__rt::SourceLocation{package:::core::env!("CARGO_PKG_NAME"),
                version:::core::env!("CARGO_PKG_VERSION"),
                file:::core::file!(),
                line:::core::line!(),
                },
                options:const{&__rt::ToolOptions{aliases:&["read"],
                primary:__rt::Some("path"),
                summary:__rt::Some("Reading {path}"),
                services:&[<State<Db>as
                __rt::FromContext>::SERVICE],
                ..__rt::ToolOptions::DEFAULT}},
                },
                |__table,
                __raw|{let
                mut
                __0 = __rt::None;let
                mut
                __1 = __rt::None;let
                mut
                __2 = __rt::None;let
                mut
                __3 = __rt::None;let
                __notes = __rt::take(
                    __table,
                    __raw,
                    &mut[&mut
                    __0,
                    &mut
                    __1,
                    &mut
                    __2,
                    &mut
                    __3]
                )?;let
                __args = __Args{path:__rt::filled(__0),
                offset:match
                __1{__rt::None = >1,
                __rt::Some(__value)= >__value,
                },
                mode:match
                __2{__rt::None = >__default2(),
                __rt::Some(__value)= >__value,
                },
                label:__rt::filled(__3),
                };__rt::Ok(
                    __rt::stage_with(
                        __notes,
                        __args,
                        &__HOOKS,
                        move|__args,
                        __approved|{let
                        __cx = __approved.context();async
                        move{(
                            __OUT.convert
                        )(
                            read_page(
                                __args.path,
                                __args.offset,
                                __args.mode,
                                &*__args.label,
                                <Context
                                as
                                __rt::FromContextRef>::from_context_ref(&__cx),
                                match<State<Db>as
                                __rt::FromContext>::from_context(&__cx){__rt::Ok(__value)= >__value,
                                __rt::Err(__error)= >{return
                                __rt::Err(__error);}}
                            ).await
                        )}}
                    )
                )}
            );static
            __TOOL:__rt::FnTool = __rt::FnTool::new(
                __PARTS.0,
                __PARTS.1
            );__rt::submit!{&__TOOL}#[doc(
                hidden
            )]#[allow(
                non_local_definitions
            )]#[macro_export]macro_rules!tool_named_read_page{(

            )= >{};}#[doc(
                hidden
            )]#[allow(
                non_local_definitions
            )]#[macro_export]macro_rules!tool_named_read{()= >{};}&__TOOL}}};}]
            #[doc(hidden)]
            #[non_exhaustive]
            pub enum read_page {}
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
            approval(required = |a, _| a.path.len() > 3, resources = subjects),
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
            #[::renamed::__private::followed_by{#[cfg(
                unix
            )]#[doc = " Arguments of `do-it`."]#[non_exhaustive]pub(crate)struct
            ActArgs{#[doc = r" Path."]pub
            path:String,
            #[doc = r" Kind."]pub
            r#type:::core::option::Option<::std::string::String>,
            #[doc = r" Ratio."]pub
            ratio:f64,
            }const
            _:()= {use::renamed::__private
            as
            __rt;pub
            enum
            __Place{}#[automatically_derived]impl
            __rt::ToolFn<__Place>for
            act{fn
            tool()->&'static
            __rt::FnTool{const
            __OUT:__rt::OutputType<()>= {use
            __rt::OtherConversion
            as
            _;__rt::ResultType::<(

            )>::CONVERSION.or(__rt::ErrorType::<()>::CONVERSION).output_type::<()>()};fn
            __default2()->f64{HALF}const
            _:fn()= ||{fn
            __is_ranged<T:__rt::Ranged>(){}__is_ranged::<f64>();fn
            __is_lengthy<T:__rt::Lengthy>(){}__is_lengthy::<String>();fn
            __is_patterned<T:__rt::Patterned>(

            ){}__is_patterned::<String>(

            );__is_patterned::<::core::option::Option<::std::string::String>>();};const
            _:(

            )= ::core::assert!(
                0.0<= (HALF as f64)&&(HALF as f64)<= 1.0,
                "default must be in its range\nhelp: write one that is allowed"
            );static
            __HOOKS:__rt::ToolCallbacks<ActArgs>= __rt::ToolCallbacks{required:__rt::Some(
                {|a,
                _|a.path.len()>3}
            ),
            resources:__rt::Some({subjects}),
            result:__rt::Some({shown}),
            key:__rt::Some(
                |__a|{use
                __rt::{ViaDebug
                as
                _,
                ViaDisplay
                as
                _,
                ViaList
                as
                _,
                ViaOption
                as
                _,
                ViaPlace
                as
                _,
                };(&&&&&__rt::SummaryValue(&__a.path)).render()}
            ),
            ..__rt::ToolCallbacks::NONE};const
            __PARTS:(
                __rt::ToolSpec,
                __rt::Prepare
            )= (
                __rt::ToolSpec{name:"do-it",
                description:const{let
                __text:&'static::core::primitive::str = TEXT;::core::assert!(
                    !__text.trim_ascii().is_empty(),
                    "`description` must not be empty\nhelp: tell the model when to use the tool"
                );__text},
                risk:__rt::Risk::new(__rt::RiskClass::Write).destructive().idempotent(),
                args:__rt::ArgsSpec::Params(
                    &[__rt::ParamSpec{name:"path",
                    description:"Path.",
                    ty:<String
                    as
                    __rt::Param>::FACTS,
                    default:__rt::None,
                    options:const{&__rt::ParamOptions{aliases:&["file"],
                    length:__rt::Some((1, MAX)),
                    pattern:__rt::Some("^[a-z]+$"),
                    ..__rt::ParamOptions::DEFAULT}},
                    },
                    __rt::ParamSpec{name:"type",
                    description:"Kind.",
                    ty:<::core::option::Option<::std::string::String>as
                    __rt::Param>::FACTS,
                    default:__rt::Some(__rt::DefaultSpec::Json("\"a\"")),
                    options:const{&__rt::ParamOptions{choices:&["a",
                    "b"],
                    hidden:true,
                    ..__rt::ParamOptions::DEFAULT}},
                    },
                    __rt::ParamSpec{name:"ratio",
                    description:"Ratio.",
                    ty:<f64
                    as
                    __rt::Param>::FACTS,
                    default:__rt::Some(
                        __rt::DefaultSpec::Value(||__rt::default_value::<f64>(__default2()))
                    ),
                    options:const{&__rt::ParamOptions{range:__rt::Some(
                        __rt::Range::Float(__rt::Some(0.0), __rt::Some(1.0))
                    ),
                    ..__rt::ParamOptions::DEFAULT}},
                    }]
                ),
                output:__OUT.schema,
                place:__rt::SourceLocation{package:::core::env!("CARGO_PKG_NAME"),
                version:::core::env!("CARGO_PKG_VERSION"),
                file:::core::file!(),
                line:::core::line!(),
                },
                options:const{&__rt::ToolOptions{title:__rt::Some("Do it"),
                category:__rt::Some("misc"),
                permission:__rt::Some("edit"),
                display_name:__rt::Some("Do"),
                show:&["path",
                "type"],
                scopes:&["oracle"],
                timeout:__rt::Some(__rt::Duration::from_millis(120000u64)),
                max_output:__rt::Some(65536),
                truncate:__rt::Some(__rt::Truncate::Tail),
                parallel:__rt::Some(__rt::ParallelSpec::By("path")),
                flags:{let
                mut
                __flags = __rt::ToolOptions::DEFAULT.flags;__flags.requires_auth = true;__flags.experimental = true;__flags},
                examples:&["{\"path\": \"a\"}"],
                init:__rt::Some({refine}),
                names_resources:true,
                ..__rt::ToolOptions::DEFAULT}},
                },
                |__table,
                __raw|{let
                mut
                __0 = __rt::None;let
                mut
                __1 = __rt::None;let
                mut
                __2 = __rt::None;let
                __notes = __rt::take(__table, __raw, &mut[&mut __0, &mut __1, &mut __2])?;let
                __args = ActArgs{path:__rt::filled(__0),
                r#type:match
                __1{__rt::None = >::core::option::Option::Some(__rt::text_default("a")),
                __rt::Some(__value)= >__value,
                },
                ratio:match
                __2{__rt::None = >__default2(),
                __rt::Some(__value)= >__value,
                },
                };__rt::Ok(
                    __rt::stage_with(
                        __notes,
                        __args,
                        &__HOOKS,
                        move|__args,
                        __approved|{async
                        move{(
                            __OUT.convert
                        )(act(__args.path, __rt::Option::as_deref(&__args.r#type), __args.ratio))}}
                    )
                )}
            );static
            __TOOL:__rt::FnTool = __rt::FnTool::new(__PARTS.0, __PARTS.1);&__TOOL}}};}]
            #[doc(hidden)]
            #[non_exhaustive]
            pub(crate) enum act {}
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
            #[::tool_sdk::__private::followed_by{const
            _:()= {use::tool_sdk::__private
            as
            __rt;pub
            enum
            __Place{}#[automatically_derived]impl
            __rt::ToolFn<__Place>for
            search{fn
            tool()->&'static
            __rt::FnTool{const
            __OUT:__rt::OutputType<String>= {use
            __rt::OtherConversion
            as
            _;__rt::ResultType::<String>::CONVERSION.or(
                __rt::ErrorType::<String>::CONVERSION
            ).output_type::<String>()};const
            _:fn(&Search)= |__a|{let
            _ = &__a.query;};static
            __HOOKS:__rt::ToolCallbacks<Search>= __rt::ToolCallbacks{summary:__rt::Some(
                |__a|{use
                __rt::{ViaDebug
                as
                _,
                ViaDisplay
                as
                _,
                ViaList
                as
                _,
                ViaOption
                as
                _,
                ViaPlace
                as
                _,
                };::std::format!("Searching {0}", (&&&&__rt::SummaryValue(&__a.query)).render())}
            ),
            ..__rt::ToolCallbacks::NONE};const
            __PARTS:(
                __rt::ToolSpec,
                __rt::Prepare
            )= (
                __rt::ToolSpec{name:"search",
                description:"Search.",
                risk:__rt::Risk::new(__rt::RiskClass::Execute),
                args:__rt::ArgsSpec::Struct(__rt::struct_type::<Search>()),
                output:__OUT.schema,
                place:__rt::SourceLocation{package:::core::env!("CARGO_PKG_NAME"),
                version:::core::env!("CARGO_PKG_VERSION"),
                file:::core::file!(),
                line:::core::line!(),
                },
                options:const{&__rt::ToolOptions{primary:__rt::Some("query"),
                summary:__rt::Some("Searching {query}"),
                ..__rt::ToolOptions::DEFAULT}},
                },
                |__table,
                __raw|{let
                mut
                __args = __rt::None;let
                __notes = __rt::take_struct(__table, __raw, &mut __args)?;let
                __args = __rt::filled(
                    __args
                );__rt::Ok(
                    __rt::stage_with(
                        __notes,
                        __args,
                        &__HOOKS,
                        move|__args,
                        __approved|{async
                        move{(__OUT.convert)(search(__rt::Args(__args)).await)}}
                    )
                )}
            );static
            __TOOL:__rt::FnTool = __rt::FnTool::new(__PARTS.0, __PARTS.1);&__TOOL}}};}]
            #[doc(hidden)]
            #[non_exhaustive]
            enum search {}
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
                "`timeout` must be a whole number and its unit\nhelp: write one number and one unit, as in `500ms`, `10s`, `2m` or `1h`"
            }
            pub async fn act(path: &str, (a, b): (u8, u8), n: u32) -> String {
                body
            }
            #[::tool_sdk::__private::followed_by{const
            _:()= {use::tool_sdk::__private
            as
            __rt;pub
            enum
            __Place{}#[automatically_derived]impl
            __rt::ToolFn<__Place>for
            act{fn
            tool()->&'static
            __rt::FnTool{static
            __TOOL:__rt::FnTool = __rt::FnTool::new(
                __rt::ToolSpec::DEFAULT,
                |_,
                _|::core::unreachable!()
            );&__TOOL}}};}]
            #[doc(hidden)]
            #[non_exhaustive]
            pub enum act {}
        "#]],
    );
}
