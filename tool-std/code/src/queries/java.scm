; Of several patterns that match one name, the first counts.

(class_declaration name: (identifier) @name) @definition.class
(record_declaration name: (identifier) @name) @definition.class
(interface_declaration name: (identifier) @name) @definition.interface
(annotation_type_declaration name: (identifier) @name) @definition.interface
(enum_declaration name: (identifier) @name) @definition.enum
(enum_constant name: (identifier) @name) @definition.variant
(method_declaration name: (identifier) @name) @definition.method
(constructor_declaration name: (identifier) @name) @definition.method
(compact_constructor_declaration name: (identifier) @name) @definition.method
(annotation_type_element_declaration name: (identifier) @name) @definition.method
(field_declaration declarator: (variable_declarator name: (identifier) @name)) @definition.field
(constant_declaration
  declarator: (variable_declarator name: (identifier) @name)) @definition.constant

(method_invocation name: (identifier) @reference.call)
(method_reference (identifier) @reference.call .)
(object_creation_expression type: (type_identifier) @reference.call)
(annotation name: (identifier) @reference.type)
(marker_annotation name: (identifier) @reference.type)
(type_identifier) @reference.type
(identifier) @reference.other
