//! The rules of the model, each of which can decide something: what a run has to have exercised.

use super::profile::table::Cell;
use std::fmt;

/// An enum without values of its own, all of whose variants are listed and have a text.
macro_rules! closed {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $text] $(#[$vdoc])* $variant),+
        }

        impl $name {
            /// Every one.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// What it says.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use closed;

closed! {
    /// A member of a filter whose value is a list (protocol section 5).
    List {
        Scopes = "scopes",
        SubjectEntityIds = "subject_entity_ids",
        Kinds = "kinds",
        LabelsAny = "labels_any",
        LabelsAll = "labels_all",
        ExcludeLabels = "exclude_labels",
        Sensitivities = "sensitivities",
    }
}

closed! {
    /// What a list of a filter says of an item.
    ListCase {
        Absent = "absent: does not restrict",
        Empty = "empty",
        OneHit = "of one element, which the item has",
        OneMiss = "of one element, which the item lacks",
        ManyFirst = "of many elements, of which the item has the first and not all others",
        ManyLater = "of many elements, of which the item has a later one and not the first",
        ManyAll = "of many elements, all of which the item has",
        ManyMiss = "of many elements, none of which the item has",
        Without = "not empty, and the item has no such member",
    }
}

impl List {
    /// The cases that can be: an item has one scope, kind and sensitivity, and always has them.
    #[must_use]
    pub fn cases(self) -> Vec<ListCase> {
        let one = matches!(self, Self::Scopes | Self::Kinds | Self::Sensitivities | Self::SubjectEntityIds);
        let always = matches!(self, Self::Scopes | Self::Kinds | Self::Sensitivities);
        let can = |case: &ListCase| match case {
            ListCase::ManyAll => !one,
            ListCase::Without => !always,
            _ => true,
        };
        ListCase::ALL.iter().copied().filter(can).collect()
    }
}

closed! {
    /// A member of a filter whose value is a bound.
    Bound {
        CapturedAfter = "captured_after",
        CapturedBefore = "captured_before",
        MinConfidence = "min_confidence",
    }
}

closed! {
    /// Where an item stands to a bound of a filter.
    BoundCase {
        Absent = "absent: does not restrict",
        JustBelow = "the item is below it, by the least step or little more",
        Below = "the item is below it",
        At = "the item is at it",
        JustAbove = "the item is above it, by the least step or little more",
        Above = "the item is above it",
    }
}

closed! {
    /// What else decides whether a grant reaches an item (protocol section 5, "Never admitted").
    Reach {
        Admitted = "everything lets it through",
        RestrictedUnnamed = "restricted, and sensitivities is absent: not admitted",
        RestrictedNotListed = "restricted, and sensitivities does not name it: not admitted",
        RestrictedNamed = "restricted, and sensitivities names it: admitted",
        NotExportable = "exportable is false, to another than the owner: not admitted",
        NotExportableToOwner = "exportable is false, to the owner: admitted",
        DefaultScope = "without scopes, of the scope of the granter: admitted",
        OtherScope = "without scopes, of another scope: not admitted",
        AboveRefuses = "the filter of a grant above does not admit it",
        NoBridge = "of another scope than the grant's, without a bridge: not admitted",
    }
}

closed! {
    /// What an item's chain and time say of it (protocol sections 4 and 4.2).
    Standing {
        Current = "captured and current: in the view",
        Corrected = "corrected: the new version is in the view, and the old one in none",
        Relabelled = "relabelled: its new labels count",
        Confirmed = "confirmed: the version stays",
        Retracted = "retracted: in no view",
        Restored = "restored: in the view again",
        Erased = "deleted: in no view",
        DerivedErased = "made from a deleted item: in no view",
        BeforeEnd = "before its expires_at: in the view",
        AtEnd = "at its expires_at: in no view",
        AfterEnd = "after its expires_at: in no view",
        BeforeTtl = "before captured_at + ttl_days: in the view",
        AfterTtl = "at or after captured_at + ttl_days: in no view",
        EndOutranksTtl = "expires_at outranks ttl_days",
    }
}

closed! {
    /// A default that is written out where the writer is silent (protocol section 4), or a form that is brought about.
    Written {
        DefaultScope = "scope_id: the default scope",
        DefaultConfidence = "provenance.confidence: 1",
        DefaultCapturedAt = "provenance.captured_at: now",
        DefaultExportable = "exportable: true",
        DefaultSensitivity = "sensitivity: internal",
        LabelsSorted = "labels: sorted, each once",
        TimesToTheMillisecond = "times: to the millisecond",
        ParticipantsCounted = "content.structured.participants_count of a calendar event: counted",
    }
}

closed! {
    /// What a profile says on a condition (protocol section 7).
    Condition {
        TransparencyBusy = "calendar_event: transparency is busy: shown",
        TransparencyOther = "calendar_event: transparency is not busy: hidden",
        TitleShown = "calendar_event: title of an event that is not private: shown",
        TitleVisibilityPrivate = "calendar_event: visibility is private: title hidden",
        TitleVisibilityConfidential = "calendar_event: visibility is confidential: title hidden",
        TitlePrivate = "calendar_event: private is true: title hidden",
        TitleRestricted = "calendar_event: sensitivity is restricted: title hidden",
        ChannelPrimaryEmail = "contact: a channel of type email that is primary: shown from level 2",
        ChannelOtherEmail = "contact: a channel of type email that is not primary: hidden at level 2",
        ChannelOtherPrimary = "contact: a primary channel of another type: hidden at level 2",
        ElementsCloseUp = "an array closes up over hidden elements",
        OtherEntity = "an entity of another type, or none: the table of every other item",
        OwnProfile = "a profile of the owner's own",
    }
}

closed! {
    /// A class of spans (protocol section 7).
    SpanClass {
        UrlCredentials = "url_credentials",
        Secret = "secret",
        Iban = "iban",
        Card = "card",
        NationalId = "national_id",
        Email = "email",
        Ip = "ip",
        Phone = "phone",
        DateOfBirth = "date_of_birth",
        StreetAddress = "street_address",
        ThirdParty = "third_party",
    }
}

closed! {
    /// Where a span stands in its text.
    SpanPlace {
        Start = "at the start",
        Middle = "in the middle",
        End = "at the end",
        Adjacent = "next to another span",
        Whole = "as the whole text",
    }
}

closed! {
    /// What may be said of a grantee's attitude (RFC 0010 A.2, protocol section 6).
    Epistemic {
        Knowledge = "confidence 1 and confirmed: knowledge",
        CertainUnconfirmed = "confidence 1 and not confirmed: belief",
        ConfirmedUncertain = "confirmed, and below 1: belief or possession",
        Above = "above belief_threshold: belief",
        At = "at belief_threshold: belief",
        Below = "below belief_threshold: possession",
    }
}

closed! {
    /// A case of a member of a query (protocol section 6, bytes 4.5).
    Asked {
        Listing = "query is empty or blank: lists the newest",
        Tie = "a tie of capture times: by item id",
        WordShown = "query: a word of what is shown finds the item",
        WordHidden = "query: a word that only a hidden place has finds nothing",
        KindsHit = "kinds: has the item's",
        KindsMiss = "kinds: lacks the item's",
        KindsEmpty = "kinds: empty",
        LabelsAnyHit = "labels_any: has one of the item's",
        LabelsAnyMiss = "labels_any: has none of the item's",
        LabelsAnyEmpty = "labels_any: empty",
        LabelsAnyHidden = "labels_any: on hidden labels admits nothing",
        MinConfidenceBelow = "min_confidence: the item is below",
        MinConfidenceAt = "min_confidence: the item is at it",
        MinConfidenceAbove = "min_confidence: the item is above",
        MinConfidenceHidden = "min_confidence: on a hidden confidence admits nothing",
        IntegrityFull = "integrity is full: the SD-JWT is there",
        IntegrityChain = "integrity is chain: the SD-JWT is not there",
        PurposeStated = "purpose: one of the grant's codes",
        PurposeAny = "purpose: any, where the grant has no codes",
        EmbeddingHidden = "embedding: not asked for, or not granted: hidden",
        EmbeddingShown = "embedding: asked for, granted, and shown by the profile",
    }
}

closed! {
    /// A page, and what ends it.
    Paged {
        Whole = "an answer that holds everything: no cursor",
        Full = "max_results items, and more behind the cursor",
        Exact = "max_results items, and nothing behind them: no cursor",
        Default = "20 items, where max_results is absent",
        Next = "a page behind a cursor: what came before is not in it",
        Moved = "a page behind a cursor, after the view has changed",
        FirstDisclosed = "an item that is disclosed for the first time",
        Again = "an item that was disclosed before",
        CapLeavesOut = "max_items is reached: an item that was never disclosed is left out",
        CapComesBack = "max_items is reached: an item that was disclosed comes back",
        CapShared = "max_items of a grant above is reached: an item is left out",
    }
}

closed! {
    /// A refusal (protocol sections 1, 5 and 6).
    Refusal {
        UnknownGrant = "a grant that is not known",
        Draft = "a grant before its not_before",
        Expired = "a grant at or after its expires_at",
        Revoked = "a revoked grant",
        AboveEnded = "a grant above is at or after its expires_at",
        AboveRevoked = "a grant above is revoked",
        OperationQuery = "a query under a grant without the operation",
        OperationExport = "an export under a grant without the operation",
        Embeddings = "include_embeddings under a grant without embedding_access",
        Purpose = "purpose: another than those of the grant",
        QueryShape = "a query that is not an object, or has a member of another type",
        QueryUnknownMember = "a query with an unknown member",
        QueryNull = "a query with null where that does not count as absent",
        MaxResultsZero = "max_results: 0",
        MaxResultsAbove = "max_results: 101",
        QueryTooLong = "query: 4097 bytes",
        ListTooLong = "kinds or labels_any: 257 elements",
        LabelTooLong = "labels_any: an element of 257 bytes",
        UnknownKind = "kinds: not a kind",
        ConfidenceRange = "min_confidence: not from 0 to 1",
        CursorTooLong = "cursor: 257 bytes",
        CursorForeign = "cursor: of another grant, or made up",
        CursorOtherQuery = "cursor: of another query",
        IntegrityUnknown = "integrity: neither full nor chain",
        PurposeTooLong = "purpose: 65 bytes",
        RequestId = "request_id: not 26 characters of the alphabet",
        BudgetQueries = "the grant's budget of queries is spent",
        BudgetEpsilon = "the grant's budget of epsilon is spent",
        BudgetAbove = "the budget of a grant above is spent",
    }
}

closed! {
    /// A condition on a grant at issue, or on a child at its exchange (protocol sections 5 and 5.2).
    Granting {
        Issued = "a grant within every limit",
        MaxItemsZero = "max_items: 0",
        MaxItemsAt = "max_items: the manifest's most",
        MaxItemsAbove = "max_items: one more than the manifest's most",
        DurationAt = "expires_at: the manifest's longest",
        DurationAbove = "expires_at: later than the manifest's longest",
        Ended = "expires_at: not later than now and not_before",
        UnknownProfile = "redaction_profile: not in the manifest",
        ProfileLevel = "redaction_profile: full.v1 below level 4",
        Irrevocable = "revocable: false",
        NoOperations = "operations: none",
        PurposeEmpty = "purpose: empty",
        PurposeTooLong = "purpose: 1001 characters",
        PurposeCodes = "purpose_codes: more than 16, or not of the alphabet",
        FilterList = "filter: a list of 257 elements",
        FilterTimes = "filter: captured_before not later than captured_after",
        Depth = "delegable.max_depth: not from 1 to 5",
        Budget = "budget: not positive",
        UnknownMember = "an unknown member",
        UnknownFilterMember = "an unknown member of the filter",
        ChildWithin = "a child within its parent",
        ChildNotDelegable = "a child of a grant that is not delegable",
        ChildDepth = "a child whose max_depth is not smaller",
        ChildGranter = "a child with another granter",
        ChildProfile = "a child with another profile",
        ChildBasis = "a child with another lawful basis",
        ChildMaxItems = "a child with more items",
        ChildBegins = "a child that begins earlier",
        ChildEnds = "a child that ends later",
        ChildLevel = "a child with a higher level",
        ChildOperations = "a child with another operation",
        ChildEmbeddings = "a child with embedding_access that its parent lacks",
        ChildBearer = "a child with bearer that its parent lacks",
        ChildPurposeCodes = "a child with other purpose codes",
        ChildBudget = "a child with a larger budget, or none",
        ChildScopes = "a child with other filter.scopes",
        ChildSubjects = "a child with other filter.subject_entity_ids",
        ChildKinds = "a child with other filter.kinds",
        ChildLabelsAny = "a child with other filter.labels_any",
        ChildLabelsAll = "a child that drops from filter.labels_all",
        ChildExcludeLabels = "a child that drops from filter.exclude_labels",
        ChildCapturedAfter = "a child with an earlier filter.captured_after",
        ChildCapturedBefore = "a child with a later filter.captured_before",
        ChildMinConfidence = "a child with a lower filter.min_confidence",
        ChildSensitivities = "a child with other filter.sensitivities",
        ChildStatus = "a child with a status of its own",
        ChildParent = "a child whose parent is not the grant above",
    }
}

closed! {
    /// What stands beside the items of an answer (protocol sections 6 and 8).
    Beside {
        ProjectionApplied = "projection_applied repeats level, profile and lawful basis",
        RedactedCountConstant = "redacted_field_count is the same for one profile and level",
        ReceiptDecision = "the receipt names grant, hash, scope, level, profile and lawful basis",
        ReceiptProfileHash = "the receipt has the profile's hash",
        ReceiptDelegation = "the receipt of a delegated grant names the grants above",
        ReceiptPurpose = "the receipt repeats the purpose",
        ReceiptTags = "the receipt names each item and the commitment in force",
        ReceiptInput = "input_hash is of the query as it was read",
        ReceiptOutput = "output_hash is of the items as they came",
        ChainEvents = "each item's chain has its events",
        AuditOwner = "audit: the owner sees all",
        AuditGrantee = "audit: a grantee sees receipts that name it and no others",
        AuditNobody = "audit: others see anonymous calls alone",
        Export = "an export is the whole view",
    }
}

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A list of the grant's filter, and its case.
    Filter(List, ListCase),
    /// A bound of the grant's filter, and its case.
    FilterBound(Bound, BoundCase),
    /// Whether the grant reaches an item.
    Reach(Reach),
    /// Where an item stands.
    Standing(Standing),
    /// What the gateway wrote into an item.
    Written(Written),
    /// A cell of a profile's table.
    Cell(Cell),
    /// A condition of a profile.
    Condition(Condition),
    /// Where a span stood that a level hides or shows.
    SpanPlace(SpanPlace),
    /// What is said of the attitude.
    Epistemic(Epistemic),
    /// A member of the query.
    Asked(Asked),
    /// A page.
    Paged(Paged),
    /// A refusal.
    Refusal(Refusal),
    /// A condition on a grant.
    Granting(Granting),
    /// What stands beside the items.
    Beside(Beside),
}

impl Rule {
    /// Every rule.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for list in List::ALL {
            all.extend(list.cases().into_iter().map(|case| Self::Filter(*list, case)));
        }
        for bound in Bound::ALL {
            all.extend(BoundCase::ALL.iter().map(|case| Self::FilterBound(*bound, *case)));
        }
        all.extend(Reach::ALL.iter().copied().map(Self::Reach));
        all.extend(Standing::ALL.iter().copied().map(Self::Standing));
        all.extend(Written::ALL.iter().copied().map(Self::Written));
        all.extend(Cell::all().into_iter().map(Self::Cell));
        all.extend(Condition::ALL.iter().copied().map(Self::Condition));
        all.extend(SpanPlace::ALL.iter().copied().map(Self::SpanPlace));
        all.extend(Epistemic::ALL.iter().copied().map(Self::Epistemic));
        all.extend(Asked::ALL.iter().copied().map(Self::Asked));
        all.extend(Paged::ALL.iter().copied().map(Self::Paged));
        all.extend(Refusal::ALL.iter().copied().map(Self::Refusal));
        all.extend(Granting::ALL.iter().copied().map(Self::Granting));
        all.extend(Beside::ALL.iter().copied().map(Self::Beside));
        all
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filter(list, case) => write!(f, "filter.{list}: {case}"),
            Self::FilterBound(bound, case) => write!(f, "filter.{bound}: {case}"),
            Self::Reach(reach) => write!(f, "reach: {reach}"),
            Self::Standing(standing) => write!(f, "item: {standing}"),
            Self::Written(written) => write!(f, "item: {written}"),
            Self::Cell(cell) => write!(f, "projection: {cell}"),
            Self::Condition(condition) => write!(f, "projection: {condition}"),
            Self::SpanPlace(place) => write!(f, "span: {place}"),
            Self::Epistemic(epistemic) => write!(f, "epistemic: {epistemic}"),
            Self::Asked(asked) => write!(f, "query: {asked}"),
            Self::Paged(paged) => write!(f, "page: {paged}"),
            Self::Refusal(refusal) => write!(f, "refused: {refusal}"),
            Self::Granting(granting) => write!(f, "granting: {granting}"),
            Self::Beside(beside) => write!(f, "answer: {beside}"),
        }
    }
}
