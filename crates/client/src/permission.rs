//! What a trust token permits, as a value and as a type.

use oap_memory::closed_enum;

closed_enum! {
    /// What a trust token permits; each includes those before it.
    Permission {
        /// Read memory.
        Read = "memory.read",
        /// Write memory.
        Write = "memory.write",
        /// Grant, revoke, delete, rotate keys, read the audit log.
        Admin = "memory.admin",
    }
}

/// Marks of the permissions that an endpoint needs, and that an owner's credential was checked for.
pub mod mark {
    use super::Permission;

    /// Read memory.
    #[derive(Debug, Clone, Copy)]
    pub enum Read {}
    /// Write memory.
    #[derive(Debug, Clone, Copy)]
    pub enum Write {}
    /// Grant, revoke, delete, rotate keys, read the audit log.
    #[derive(Debug, Clone, Copy)]
    pub enum Admin {}

    mod sealed {
        /// Nobody else says what permits what.
        pub trait Sealed {}
        impl Sealed for super::Read {}
        impl Sealed for super::Write {}
        impl Sealed for super::Admin {}
    }

    /// A permission as a type.
    pub trait Mark: sealed::Sealed + Clone + Send + Sync + 'static {
        /// What a credential needs to have been given.
        const PERMISSION: Permission;
    }

    impl Mark for Read {
        const PERMISSION: Permission = Permission::Read;
    }
    impl Mark for Write {
        const PERMISSION: Permission = Permission::Write;
    }
    impl Mark for Admin {
        const PERMISSION: Permission = Permission::Admin;
    }

    /// That whoever may do the one thing may do the other, too.
    pub trait Permits<P>: Mark {}

    impl Permits<Read> for Read {}
    impl Permits<Read> for Write {}
    impl Permits<Read> for Admin {}
    impl Permits<Write> for Write {}
    impl Permits<Write> for Admin {}
    impl Permits<Admin> for Admin {}
}
