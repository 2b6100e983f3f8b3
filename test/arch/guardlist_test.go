package arch

// guards lists a guard for each test of the table. Row by row, what stands here is taken
// out by make mutants.
func guards() []guard {
	return append(network(), append(evidence(), append(rules(), edge()...)...)...)
}

// network is who gets credentials, and what is fetched from where.
func network() []guard {
	return []guard{
		without(1, "external.TestCredentialsOfCloudsGoToTheirOwnHostsOnly", "pkg/remote/external/cloud.go",
			`return host == "gcr.io" || (ok && egress.IsLabel(location))`, `return strings.HasSuffix(host, "gcr.io") || (ok && egress.IsLabel(location))`),
		without(2, "registry.TestCredentialsAreSentToTheirHostOnly", "pkg/remote/registry/realm.go",
			`case g.trusted(hostOf(at)):`, `case at != nil:`),
		without(3, "registry.TestARedirectLeadsToNoPrivateAddress", "pkg/remote/registry/transport.go",
			`g.session.access.rule(host); rule.Private`, `g.session.access.rule(g.origin); rule.Private`),
		without(3, "egress.TestOnlyPublicAddressesAreDialled", "pkg/remote/egress/guard.go",
			"\t\t\treturn ErrAddress\n", "\t\t\treturn nil\n"),
		without(4, "registry.TestATokenServerMustProveWhoItIs", "pkg/remote/egress/client.go",
			`&tls.Config{RootCAs: roots,`, `&tls.Config{InsecureSkipVerify: true, RootCAs: roots,`),
		without(5, "verify.TestTheVerdictIsAboutOneDigestHoweverOftenTheTagMoves", "pkg/decide/verify/locations.go",
			`return Subject{Reference: ref.WithDigest(entry.Descriptor.Digest),`, `return Subject{Reference: ref,`),
		without(5, "registry.TestHostileAnswersAreErrorsInBoundedTimeAndMemory/a .sig manifest with a lying digest", "pkg/remote/registry/session.go",
			`case computed == descriptor.Digest:`, `case computed != "":`),
		without(6, "verify.TestVerdictsFollowTheEvidence", "pkg/decide/verify/locations.go",
			`case ref.Digest != "" && descriptor.Digest != ref.Digest:`, `case false:`),
		without(6, "notation.TestDeniesSubjectWithoutOneDigest", "pkg/evidence/notation/checker.go",
			`case want != subject.Reference.Digest || want.Validate()`, `case want.Validate()`),
		without(14, "registry.TestHostileAnswersAreErrorsInBoundedTimeAndMemory/10 GB of .sig manifest", "pkg/remote/registry/guard.go",
			`resp.Body = http.MaxBytesReader(nil, resp.Body, maxManifestBytes)`, `_ = maxManifestBytes`),
		without(14, "registry.TestReferrersPastTheLimitAreNotReadAndTheErrorSaysSo", "pkg/remote/registry/referrers.go",
			`if len(found) == maxReferrers {`, `if false {`),
		without(16, "external.TestNoFetchWritesToDisk", "pkg/remote/external/tuf.go",
			`DisableLocalCache: true`, `DisableLocalCache: false`),
		without(17, "external.TestTheLastGoodValueCountsWhileFetchingFailsAndNoLonger", "pkg/remote/external/external.go",
			"v.Content, v.Roles = nil, nil", "v.Roles = nil"),
		without(23, "arch.TestEvidenceCarriesNoKubernetes", "pkg/remote/registry/limits.go",
			"package registry\n", "package registry\n\nimport _ \"k8s.io/client-go/rest\"\n"),
		without(23, "external.TestTenantsReachListedHostsWithTheirOwnCredentials", "pkg/remote/external/fetch.go",
			"!s.own() {\n\t\t\treturn errors.New(\"a namespace's resource needs credentials of its own for a key",
			"!s.own() && false {\n\t\t\treturn errors.New(\"a namespace's resource needs credentials of its own for a key"),
		without(24, "revocation.TestAsksOnlyHostsThatAreListed", "pkg/evidence/revocation/revocation.go",
			`case !p.hosts.Contain(u):`, `case false:`),
		without(24, "notation.TestStrangersCertificatesCauseNoRequest", "pkg/evidence/notation/outcome.go",
			"\tif !c.anchors.contain(chain) && !c.signing.contain(chain) {\n\t\t// This check",
			"\tif c.revocation != nil {\n\t\t_, _ = c.checkRevocation(ctx, chain, time.Now(), purpose.CodeSigning)\n\t}\n"+
				"\tif !c.anchors.contain(chain) && !c.signing.contain(chain) {\n\t\t// This check"),
	}
}

// evidence is what strangers sign and attach.
func evidence() []guard {
	return []guard{
		without(7, "cosign.TestAttestationsMustBeOfTheTypeAndSayWhatIsDemanded", "pkg/evidence/cosign/checker.go",
			`case statement.PredicateType != a.predicateType:`, `case false:`),
		without(8, "cosign.TestDeniesStatementsThatAreNotOneSignatureOfTheImage", "pkg/evidence/cosign/evidence.go",
			`return nil, refused(fmt.Errorf("the signed statement %w", err))`, `_ = fmt.Errorf; return []claims{{}}, nil`),
		without(8, "cosign.TestCertificatesMustBeInTransparencyLogs", "pkg/evidence/cosign/keyless.go",
			`if !k.InsecureIgnoreSCT {`, `if false {`),
		without(9, "cosign.TestForeignLogEntriesAndTimestampsProveNothing", "pkg/evidence/cosign/keyless.go",
			"bundleverify.WithTransparencyLog(atLeast(k.Thresholds.Log)),\n", ""),
		without(9, "cosign.TestKeysWithALogDemandTheLog", "pkg/evidence/cosign/signers.go",
			`options = append(options, bundleverify.WithTransparencyLog(1))`, `_ = options`),
		without(10, "cosign.TestKeysAndIdentitiesAreNotMixedUp", "pkg/evidence/cosign/evidence.go",
			`case !parsed.certificate && s.identities != nil:`, `case false:`),
		without(10, "cosign.TestDeniesBundleThatRestsOnACertificate", "pkg/evidence/cosign/evidence.go",
			`case parsed.certificate && s.identities == nil:`, `case false:`),
		without(11, "cosign.TestEveryTimestampMustBeWithinTheCertificate", "pkg/evidence/cosign/keyless.go",
			`if err := k.checkTimestamps(ctx, parsed); err != nil {`, `if err := k.checkTimestamps(ctx, parsed); false && err != nil {`),
		without(11, "notation.TestTimeIsJudgedByTheLevel", "pkg/evidence/notation/outcome.go",
			`return checkValidity(signer.CertificateChain, now)`, `return nil`),
		without(12, "policy.TestDecide/one signer seen by two verifiers is one", "pkg/decide/policy/decide.go",
			"case f.Proven():\n\t\t\tsigners[f.signer] = true", "case f.Proven():\n\t\t\tsigners[f.Verifier] = true"),
		without(12, "cosign.TestWhatVouchesForAKeylessSignatureMustBeThere", "pkg/evidence/cosign/keyless.go",
			`WithTransparencyLog(atLeast(k.Thresholds.Log))`, `WithTransparencyLog(atLeast(0))`),
		without(13, "notation.TestRevokedTimestampAuthoritiesAreNotTrusted", "pkg/evidence/notation/checker.go",
			`RevocationTimestampingValidator: timestampRevocation{c},`, `RevocationTimestampingValidator: timestampRevocation{&Checker{}},`),
		without(13, "notation.TestStrictJudgesByTheTimeOfTheCaller", "pkg/evidence/notation/outcome.go",
			`if proven, err = proven.unless(checkExpiry(signer.SignedAttributes.Expiry, now), c.logs.expiry); err != nil {`, `if false {`),
		without(15, "notation.TestDeniesWhatIsTooLargeBeforeItCostsAnything", "pkg/formats/intake/key.go",
			`if len(chain) > maxCertificates {`, `if false {`),
	}
}

// rules is what resources say, and who may say it.
func rules() []guard {
	const template = "library/verified-images/template.yaml"
	return []guard{
		without(18, "cosign.TestKeylessSignaturesAreValidForTheIdentitiesThatAreTrusted", "pkg/evidence/cosign/identity.go",
			`i.Subject, whole(i.SubjectRegExp))`, `i.Subject, whole(i.SubjectRegExp+"|.*"))`),
		without(18, "configdir.TestBreaksObjectsWhoseContentCannotBeRead/unknown field", "pkg/resources/configdir/decode.go",
			`serializer.EnableStrict`, `serializer.DisableStrict`),
		without(19, "image.TestPatternMatchesHostAndPathApart", "pkg/formats/image/pattern.go",
			`case !p.host.Match(r.Host):`, `case false:`),
		without(19, "image.TestPatternNeverMatchesAnotherHost", "pkg/formats/image/pattern.go",
			`case !p.host.Match(r.Host):`, `case false:`),
		without(20, "service.TestUnknownNamespacesAreLookedForBeforeAnythingIsDecided", "pkg/resources/service/decider.go",
			`return nil, verify.Unfinished(fmt.Errorf("look for namespace %s: %w", namespace, err))`, `return snapshot.For(namespace), nil`),
		without(21, "resolve.TestMandatoryPoliciesApplyEverywhereWithClusterResources", "pkg/resources/resolve/view.go",
			"v.config.Tiers = append(v.config.Tiers, tier)\n", "_ = tier\n"),
		without(21, "resolve.TestAnExceptionCountsOnlyAsFarAsItIsDelegated", "pkg/resources/resolve/exceptions.go",
			`if d == nil || !d.Covers(from, tenant) || !d.Covers(in, tenant) {`, `if d == nil {`),
		without(21, "verify.TestAnExceptionOnlyEverAddsWhatItAloneMatches", "pkg/decide/verify/exception.go",
			`return x.OverrideMandatory || !c.hasMandatory() }`,
			`return !c.hasMandatory() || slices.ContainsFunc(c.Exceptions, func(x Exception) bool { return x.OverrideMandatory }) }`),
		without(21, "verify.TestAMandatoryPolicyHoldsAgainstExceptionsThatDoNotOverrideIt", "pkg/decide/verify/exception.go",
			`return x.OverrideMandatory || !c.hasMandatory() }`, `return true }`),
		without(32, "provider.TestAnExceptionForOneImageDoesNotFreeThePod", "pkg/decide/verify/exception.go",
			`x.Images != nil && has(x.Images)`, `x.Images != nil`),
		without(33, "verify.TestACachedVerdictNeverOutlivesTheEndOfAnException", "pkg/decide/verify/exception.go",
			"return !now.Before(x.From) && now.Before(x.Until)\n", "return !now.Before(x.From)\n"),
		without(33, "resolve.TestABrokenExceptionAllowsNothingAndDisturbsNothing", "pkg/resources/compile/exception.go",
			`if last := x.Created.Add(most); x.Until.After(last) {`, `if last := x.Created.Add(most); false {`),
		without(21, "policy.TestDecideIsMonotone", "pkg/decide/policy/decide.go",
			"\tcase denied != nil:\n", "\tcase denied != nil && false:\n"),
		without(22, "resolve.TestReferencesAreThoseThatTheirResourceMayMake", "pkg/resources/resource/fields.go",
			`case len(validation.IsDNS1123Subdomain(name)) > 0:`, `case false:`),
		without(22, "resolve.TestReferencesAreThoseThatTheirResourceMayMake", "pkg/resources/resource/fields.go",
			`if owner == "" {`, `if true {`),
		without(22, "resolve.TestTrustStoreReferencesStayWithinTheirReach", "pkg/resources/compile/truststore.go",
			`case kind == v1beta1.KindTrustStore && ts.Owner == verify.Cluster:`, `case false:`),
		without(22, "external.TestTenantsReachListedHostsWithTheirOwnCredentials", "pkg/remote/external/fetch.go",
			`if !hosts.Contain(address) {`, `if false {`),
		without(25, "library.TestNothingInThePodsMetadataVouchesForIt", template,
			"denial := [] if input.review.operation == \"DELETE\"\n",
			"denial := [] if input.review.operation == \"DELETE\"\n\n              else := [] if input.review.object.metadata.deletionTimestamp\n"),
		without(26, "library.TestNothingInThePodsMetadataVouchesForIt", template,
			"denial := [] if input.review.operation == \"DELETE\"\n",
			"denial := [] if input.review.operation == \"DELETE\"\n\n              else := [] if count(input.review.object.metadata.annotations) > 0\n"),
		without(26, "library.TestTemplateAdmitsOnlyWhatIsProven", template,
			"some field in {\"containers\", \"initContainers\", \"ephemeralContainers\"}\n                spec[field][i] = _\n              } | {[",
			"some field in {\"containers\", \"initContainers\"}\n                spec[field][i] = _\n              } | {["),
	}
}

// edge is caches, connections, the process, and what counts as nothing.
func edge() []guard {
	const off = "\t\tSessionTicketsDisabled: true,\n"
	return []guard{
		without(27, "cache.TestForgedValuesInRedisAreMisses/from another key", "pkg/remote/cache/seal.go",
			`append(header[:len(header):len(header)], key...)`, `append(header[:len(header):len(header)], key[:0]...)`),
		{28, "provider.TestNoSessionIsResumed", []edit{
			{"pkg/server/provider/tls.go", off + "\t\tClientAuth: ", "\t\tClientAuth: "},
			{"pkg/server/provider/tls.go", off + "\t\tGetConfigForClient: ", "\t\tGetConfigForClient: "}}},
		without(29, "provider.TestEveryPhaseOfAConnectionEnds", "pkg/server/provider/server.go",
			"\t\tReadHeaderTimeout: readHeaderTimeout,\n", ""),
		without(29, "arch.TestVersionsAreNotOlderThanTheMendedOnes", "go.mod", "\ngo 1.26.6\n", "\ngo 1.26.1\n"),
		without(30, "provider.TestNamespaceLabelsAreBounded", "pkg/server/provider/metrics.go",
			`if len(l.known) >= l.limit {`, `if false {`),
		without(30, "verify.TestAPanickingCheckerAdmitsNothing", "pkg/decide/verify/gather.go",
			"if r := recover(); r != nil {\n\t\t\t// Our own", "if r := any(nil); r != nil {\n\t\t\t// Our own"),
		without(30, "provider.TestPanicOfAVerifierIsUndecidedAndEndsNothing", "pkg/server/provider/gather.go",
			"if cause := recover(); cause != nil {", "if cause := any(nil); cause != nil {"),
		without(31, "policy.TestDecide/the zero requirement never holds", "pkg/decide/policy/decide.go",
			`if r.atLeast < 1 || len(r.verifiers) == 0 {`, `if false {`),
		without(31, "policy.TestRequirementsThatWouldAlwaysHoldDoNotConstruct", "pkg/decide/policy/decide.go",
			"if len(verifiers) == 0 {\n\t\treturn Requirement{}", "if false {\n\t\treturn Requirement{}"),
	}
}
