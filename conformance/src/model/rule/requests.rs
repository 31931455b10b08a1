//! Rules of what is asked: queries, pages, refusals, grants, and what stands beside an answer.

use super::closed;

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
        MaxItemsZero = "max_items: 0",
        MaxItemsAbove = "max_items: one more than the manifest's most",
        DurationAbove = "expires_at: later than the manifest's longest",
        Ended = "expires_at: not later than now and not_before",
        UnknownProfile = "redaction_profile: not in the manifest",
        ProfileLevel = "redaction_profile: full.v1 below level 4",
        Irrevocable = "revocable: false",
        NoOperations = "operations: none",
        PurposeEmpty = "purpose: empty",
        PurposeTooLong = "purpose: 1001 characters",
        PurposeCodes = "purpose_codes: more than 16, or not of the alphabet",
        FilterList = "filter: a list of 257 elements, or an element of 257 characters",
        FilterTimes = "filter: captured_before not later than captured_after",
        FilterScopes = "filter.scopes: another scope, without a bridge",
        Depth = "delegable.max_depth: not from 1 to 5",
        Budget = "budget: not positive",
        UnknownMember = "an unknown member",
        UnknownFilterMember = "an unknown member of the filter",
        Form = "a member of another form, a number out of its range, or a word of no list",
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
        ChildShape = "a child that lacks a member, or has one of another form",
        ChildParent = "a child whose parent is not the grant above",
        ChildIssued = "a child that was issued later than now",
    }
}

closed! {
    /// What a grant may be (protocol sections 5 and 5.2).
    Permitted {
        Issued = "a grant within every limit",
        MaxItemsAt = "max_items: the manifest's most",
        DurationAt = "expires_at: the manifest's longest",
        ChildWithin = "a child within its parent",
    }
}

closed! {
    /// What stands beside the items of an answer (protocol sections 6 and 8).
    Beside {
        ProjectionApplied = "projection_applied repeats level, profile and lawful basis",
        RedactedCount = "redacted_field_count is that of profile and level",
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
        AccountSpent = "the account of a grantee over all its grants is spent",
    }
}

closed! {
    /// What a rotation of the principal's keys leaves (protocol section 2).
    Keys {
        Next = "after a rotation the next key is published, and it alone is in use",
        Former = "after a rotation the former key stays, with the time of its retirement",
        Signs = "after a rotation answers and receipts are signed by the key in use",
        Proved = "after a rotation what a former key signed verifies",
        Exchanged = "after a rotation a grant that a former key signed is exchanged, for a token by the key in use",
        Held = "after a rotation a token that a former key signed holds",
    }
}

closed! {
    /// What a grant is exchanged for (protocol section 5.1).
    Exchanged {
        Claims = "the token says grant, scope, granter, grantee and origin",
        Bound = "a token of type DPoP, with the grantee's key in cnf",
        Bearer = "a token of type Bearer, without cnf",
        Lives = "the token lives ten minutes at most",
        EndsWithGrant = "the token ends with a grant that ends sooner",
        First = "a first grant gets no status",
        Delegated = "a delegated grant gets a place in the status list",
    }
}

closed! {
    /// What is told of the state of a grant (protocol section 5.1).
    GrantState {
        Draft = "before its not_before: draft",
        LastDraft = "a millisecond before its not_before: draft",
        Begins = "at its not_before: active",
        Active = "in force: active",
        LastActive = "a millisecond before its expires_at: active",
        Ends = "at its expires_at: expired",
        Expired = "after its expires_at: expired",
        Revoked = "revoked",
        AboveRevoked = "a grant above is revoked: revoked",
        OfAnother = "to anybody but its grantee: not there",
    }
}

closed! {
    /// Vectors, and where an item says that its own is (protocol section 6).
    Vectors {
        Named = "embedding_ref: asked for, granted, shown by the profile: model, dimensions and address",
        NotNamed = "embedding_ref: not asked for, not granted, or hidden by the profile: not there",
        Given = "of an item that was disclosed, for whoever may have it",
        NoAccess = "under a grant without embedding_access: refused",
        NotDisclosed = "of an item that was never disclosed: not there",
        Hidden = "of an item that was disclosed, by a profile that hides embeddings: not there",
        Gone = "of an item that was disclosed and is in the view no more: not there",
        Outside = "of an item that never was in the view: not there",
        NoModel = "of a gateway without a model of embeddings: not there",
    }
}
