//! Error enums whose variants are the checks of a verifier, each with a stable name.
//!
//! The names are what the portable cases and the forgeries speak of; the texts may change.

/// Declares an error enum: one variant for each check, `= "its.name"`; under `within`, the errors of parts, whose names
/// are passed on. Makes `id()` and `CHECKS` of it.
#[doc(hidden)]
#[macro_export]
macro_rules! reasons {
    (
        $(#[$doc:meta])*
        $name:ident {
            $( $(#[$vdoc:meta])* $variant:ident
               $( ( $( $(#[$attribute:meta])* $field:ty ),+ $(,)? ) )? = $id:literal, )*
        }
        $( within { $( $(#[$ndoc:meta])* $inner:ident ( $(#[$from:meta])* $error:ty ), )* } )?
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
        #[allow(missing_docs, reason = "each variant says what its message says")]
        pub enum $name {
            $( $(#[$vdoc])* $variant $( ( $( $(#[$attribute])* $field ),+ ) )?, )*
            $( $( $(#[$ndoc])* $inner ( $(#[$from])* $error ), )* )?
        }

        impl $name {
            /// The stable names of the checks that are made here, without those of the parts.
            pub const CHECKS: &'static [&'static str] = &[$($id),*];

            /// The stable name of the check that failed.
            #[must_use]
            pub fn id(&self) -> &'static str {
                match self {
                    $( Self::$variant { .. } => $id, )*
                    $( $( Self::$inner(inner) => inner.id(), )* )?
                }
            }
        }
    };
}
