package arch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// mutant is a fault that a suite must notice: new replaces old, which file has once, and then
// test fails.
type mutant struct {
	// tag is that of the run: "" for make test, "e2e", "nightly".
	tag string
	// folder is the package of the test.
	folder, test   string
	file, old, new string
}

// suite is a package in a run.
type suite struct{ tag, folder string }

func (m mutant) suite() suite { return suite{m.tag, m.folder} }

// mutated returns the content of the mutant's file below a folder, as it is and with the fault.
func (m mutant) mutated(folder string) (sound, faulty string, err error) {
	text, err := os.ReadFile(filepath.Join(folder, m.file))
	if err != nil {
		return "", "", fmt.Errorf("read a fault of %s: %w", m.test, err)
	}
	faulty, err = edit{m.file, m.old, m.new}.apply(string(text))
	return string(text), faulty, err
}

func TestEveryMutantIsInTheCodeOnce(t *testing.T) {
	for _, m := range suiteMutants() {
		_, _, err := m.mutated(root)
		assert.NoError(t, err, m.test)
	}
}

// suiteMutants are one fault or more for each package with tests of make e2e, and for others
// whose tests have moved or shrunk.
func suiteMutants() []mutant {
	return []mutant{
		{tag: "", folder: "pkg/tenancy/scaffold", test: "TestCheckFindsWhatIsWrong", file: "pkg/tenancy/scaffold/teamrepository.go",
			old: "ok && account == \"\" {", new: "ok && account == \"\" && false {"},
		{tag: "", folder: "pkg/tenancy/scaffold", test: "TestCheckFindsRightsForEveryoneAndForPeopleOfTeams", file: "pkg/tenancy/scaffold/rights.go",
			old: "case \"Group system:authenticated\":", new: "case \"Group nobody\":"},
		{tag: "", folder: "pkg/tenancy/scaffold", test: "TestCheckFindsNamespacesOfTeamsThatNobodyVerifies", file: "pkg/tenancy/scaffold/exempt.go",
			old: "constraint.ModeIn(constraints, namespace, labels) != constraint.None {", new: "true {"},
		{tag: "", folder: "pkg/resources/lint", test: "TestWhatAClusterLacksIsAnError", file: "pkg/resources/lint/missing.go",
			old: "case c.whole:", new: "case false:"},
		{tag: "", folder: "pkg/tenancy/scaffold", test: "TestCheckFindsHiddenSecrets", file: "pkg/tenancy/scaffold/auth.go",
			old: "if !concealed(key, value) {", new: "if _, _ = concealed, value; false {"},
		{tag: "", folder: "cmd/landwaiter", test: "TestScripts", file: "cmd/landwaiter/platformcheck.go",
			old: "return found.exit(false)", new: "return nil"},
		{tag: "e2e", folder: "test/admission", test: "TestLibraryDeniesLive", file: "library/no-privileged-containers/template.yaml",
			old: "set_to(container.spec.securityContext.privileged)", new: "false"},
		{tag: "e2e", folder: "test/admission", test: "TestAuditsCountWhatTheSetsWouldDeny", file: "library/constraints/baseline/container-allowed-ports.yaml",
			old: "min: 1024", new: "min: 1"},
		{tag: "e2e", folder: "test/admission", test: "TestWhoMayDoWhatWithResources", file: "charts/landwaiter/templates/personas.yaml",
			old: "resources: [{{ without (splitList \", \" $cluster) \"clusterexceptions\" \"clusterquotas\" \"tenants\" | join \", \" }}]",
			new: "resources: [{{ $namespaced }}]"},
		{tag: "e2e", folder: "test/admission", test: "TestWhoMayDoWhatByEachRole", file: "charts/landwaiter/templates/personas.yaml",
			old: "resources: [namespaces, pods, replicationcontrollers, configmaps, serviceaccounts]",
			new: "resources: [namespaces, pods, replicationcontrollers, configmaps, serviceaccounts, secrets]"},
		{tag: "", folder: "test/kit/rbac", test: "TestAllowsWhatRBACAllows", file: "test/kit/rbac/rbac.go",
			old: "len(rule.ResourceNames) == 0 || ", new: "true || "},
		{tag: "e2e", folder: "test/admission", test: "TestAnExceptionFreesItsImageAndNotThePodAndEnds", file: "pkg/resources/compile/exception.go",
			old: "Why: x.why, Until: x.Until, Images: x.images", new: "Why: x.why, Until: x.Until.Add(time.Hour), Images: x.images"},
		{tag: "e2e", folder: "test/admission", test: "TestPodsNeedProvenanceUnderGitHubsOwnRoot", file: "pkg/resources/compile/signers.go",
			old: "case !spec.InsecureIgnoreTransparencyLog && len(store.Root.RekorLogs()) == 0 && timestamps:", new: "case false:"},
		{tag: "", folder: "test/evidence", test: "TestKeysCountOnlyWithALogEntryOfTheirOwnSignature", file: "pkg/resources/compile/signers.go",
			old: "if s.InsecureIgnoreLog = spec.InsecureIgnoreTransparencyLog; s.InsecureIgnoreLog {", new: "if s.InsecureIgnoreLog = true; s.InsecureIgnoreLog {"},
		{tag: "", folder: "test/evidence", test: "TestARevokedCertificateIsDeniedByDefault", file: "pkg/resources/compile/notation.go",
			old: "return v1beta1.RevocationModeCheck", new: "return v1beta1.RevocationModeIgnore"},
		{tag: "e2e", folder: "test/teams", test: "TestIsolationFindsPlantedHoles", file: "pkg/inspect/isolation/server.go",
			old: "if r.name != \"\" || r.verb == \"bind\"", new: "if true || r.name != \"\" || r.verb == \"bind\""},
		{tag: "e2e", folder: "test/teams", test: "TestTheOperatorStopsWhenOneOfItsGuardrailsIsTakenAway", file: "pkg/tenancy/operator/guardrail.go",
			old: "case errors.Is(err, ErrNoGuardrail):", new: "case false:"},
		{tag: "e2e", folder: "test/teams", test: "TestDeletingATeamKeepsItsNamespacesUnlessItSaysOtherwise", file: "pkg/tenancy/operator/delete.go",
			old: "&namespaces, client.MatchingLabels{v1beta1.LabelTenant: tenant.Name}", new: "&namespaces, client.HasLabels{v1beta1.LabelTenant}"},
		{tag: "e2e", folder: "test/install", test: "TestPodsAreRestricted", file: "charts/landwaiter/values.yaml",
			old: "readOnlyRootFilesystem: true", new: "readOnlyRootFilesystem: false"},
		{tag: "e2e", folder: "test/install", test: "TestTheServiceMonitorKeepsTheLabelsOfTheMetrics", file: "charts/landwaiter/templates/servicemonitor.yaml",
			old: "honorLabels: true}", new: "honorLabels: false}"},
		{tag: "e2e", folder: "test/install", test: "TestEachAlertFiresWhenItShouldAndOnlyThen", file: "charts/landwaiter/files/rules.yaml",
			old: "14 * 86400", new: "40 * 86400"},
		{tag: "e2e", folder: "test/install", test: "TestAnAdminInstallsUpgradesAndUninstallsWithThePagesAlone", file: "docs/howto/install.md",
			old: "clusterstore/company-registry", new: "clusterstore/company"},
		{tag: "e2e", folder: "config/release", test: "TestTheChartRunsTheImageAsItsUser", file: "charts/landwaiter/values.yaml",
			old: "runAsUser: 65532", new: "runAsUser: 65533"},
		{tag: "", folder: "test/evidence", test: "TestAMandatoryPolicyHoldsAgainstALaxNamespace", file: "pkg/resources/resolve/view.go",
			old: "for _, p := range mandatory {", new: "for _, p := range mandatory[:0] {"},
		{tag: "", folder: "test/evidence", test: "TestDeniesSignatureOfAnotherRepositoryWithMatchRepository", file: "pkg/evidence/cosign/refusal.go",
			old: "case named.Name() != ref.Name():", new: "case false:"},
		{tag: "", folder: "test/evidence", test: "TestAcceptsWhatCosignAttestsAndDeniesItsTwin", file: "pkg/evidence/cosign/checker.go",
			old: "case statement.PredicateType != a.predicateType:", new: "case false:"},
		{tag: "e2e", folder: "test/evidence", test: "TestImagesThatAWSSignerSignedForATeamsProfileAreAdmitted", file: "pkg/evidence/notation/awssigner.go",
			old: "case len(revoked) == 0:", new: "case true:"},
		{tag: "e2e", folder: "test/evidence", test: "TestTheGuardrailLeavesLandwaiterTokensForCloudsAlone", file: "charts/landwaiter/templates/guardrails.yaml",
			old: "object.spec.expirationSeconds <= 3600\"", new: "object.spec.expirationSeconds <= 36000\""},
		{tag: "e2e", folder: "pkg/server/controller", test: "TestAStatusHasTwoWritersAndNeitherTakesFromTheOther", file: "pkg/server/controller/statuses.go",
			old: "w.writer.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner(fieldManager), client.ForceOwnership)",
			new: "w.writer.Status().Patch(ctx, applied, client.Merge, client.FieldOwner(fieldManager))"},
		{tag: "e2e", folder: "pkg/server/controller", test: "TestMaterialFromElsewhereIsFetchedAndShownInTheStatus", file: "pkg/server/controller/statuses.go",
			old: "if !report.FetchedAt.IsZero() {", new: "if false {"},
		{tag: "e2e", folder: "pkg/server/controller", test: "TestAChangeIsLiveAmongAThousandNamespaces", file: "pkg/resources/resolve/snapshot.go",
			old: "was.bound != bound || was.used != was.using(next.cluster.shared)", new: "false"},
		{tag: "e2e", folder: "pkg/remote/cache", test: "TestAMasterThatIsDownCostsOnlyItsOwnVerdicts", file: "pkg/remote/cache/breakers.go",
			old: "if to == gobreaker.StateOpen && b.cluster != nil {", new: "if false {"},
		{tag: "e2e", folder: "test/dev", test: "TestWhatItPrintsCanBeCopiedAndCtrlCLeavesNothing", file: "test/dev/invitation.txt",
			old: "deployment web --namespace team-a-web --image {{.Registry}}/shared/web:v1",
			new: "deployment web --namespace team-a-web --image {{.Registry}}/shared/app:v1"},
		{tag: "e2e", folder: "test/inspect", test: "TestAPreviewNeverUsesTheIdentityOrTheLoginsOfTheMachine", file: "pkg/remote/external/fetch.go",
			old: "ambient && !f.options.UnsafePod", new: "false && ambient"},
		{tag: "e2e", folder: "test/inspect", test: "TestWhatAClusterAdminPreviewsIsExactlyWhatIsDeniedOnceItIsEnforced", file: "pkg/inspect/live/preview.go",
			old: "After: ask(ctx, after, use)", new: "After: ask(ctx, before, use)"},
		{tag: "nightly", folder: "test/inspect", test: "TestEachFindingIsMendedByItsCommand", file: "pkg/inspect/check/gatekeeper.go",
			old: "err == nil && ttl > maxCacheTTL", new: "err == nil && ttl < 0"},
		{tag: "e2e", folder: "api/v1beta1", test: "TestAPIServerHoldsEveryRule", file: "config/crd/landwaiter.dev_clusterverificationpolicies.yaml",
			old: "self.spec.defaultAction != 'Inherit'", new: "self.spec.defaultAction != 'inherit'"},
		{tag: "e2e", folder: "test/library", test: "TestEveryRuleOfEveryTemplateIsNoticedByItsSuite", file: "library/no-privileged-containers/template.yaml",
			old: "violation contains {\"msg\": msg} if some msg in review.added(problems)",
			new: "violation contains {\"msg\": msg} if some msg in review.added(problems)\n\n              violation contains {\"msg\": \"never\"} if input.never"},
		{tag: "e2e", folder: "test/load/ladder", test: "TestShortScenariosRunWithoutAWrongAnswer", file: "pkg/remote/registry/session.go",
			old: "case computed == descriptor.Digest:", new: "case false:"},
		{tag: "e2e", folder: "test/load", test: "TestNothingGoesWrongAndNothingGrows", file: "pkg/decide/verify/config.go",
			old: "Namespace: p.Namespace, Kind: KindVerdict, UID: p.UID, Generation: p.generation()", new: "Kind: KindVerdict"},
		{tag: "nightly", folder: "test/load", test: "TestAnAttackCostsNobodyElse", file: "pkg/remote/registry/session.go",
			old: "case computed == descriptor.Digest:", new: "case false:"},
		{tag: "e2e", folder: "test/gitops", test: "TestWithoutControllersATenantsAccountStaysInItsNamespaces", file: "pkg/tenancy/onboard/rights.go",
			old: "Namespace: r.Spec.HomeNamespace, Name: Account(r.Tenant)}", new: "Namespace: r.Spec.HomeNamespace, Name: \"default\"}"},
		{tag: "", folder: "pkg/inspect/check", test: "TestTenantsCostRequestsThatEverybodyMakesNextToNothing", file: "config/guardrails/guardrails.yaml",
			old: "request.userInfo.username.startsWith('system:serviceaccount:' + params.spec.homeNamespace + ':') || object.metadata.name == params.spec.homeNamespace ||",
			new: "true || object.metadata.name == params.spec.homeNamespace ||"},
		{tag: "", folder: "pkg/server/report", test: "TestUnchangedResultsAreWrittenOnce", file: "pkg/server/report/term.go",
			old: "if exists && before.hash == hash {", new: "if exists && false {"},
		{tag: "", folder: "pkg/decide/cel", test: "TestWhatSaysNothingIsAnErrorAndNoMatch", file: "pkg/decide/cel/cost.go",
			old: ", celgo.CostLimit(maxCost)}", new: "}"},
		{tag: "", folder: "pkg/resources/configdir", test: "TestRefusesFilesThatItMustNotRead", file: "pkg/resources/configdir/document.go",
			old: "if len(documents) >= maxDocuments {", new: "if false {"},
		{tag: "", folder: "pkg/resources/configdir", test: "TestReadsWhatKubectlPrintsOfAnEntireCluster", file: "pkg/resources/configdir/limits.go",
			old: "maxMarks      = 600_000", new: "maxMarks      = 60_000"},
		{tag: "", folder: "pkg/decide/fair", test: "TestAccountsThatOweNothingAreForgotten", file: "pkg/decide/fair/turns.go",
			old: "if len(t.users) >= t.full && t.now != nil {", new: "if false {"},
		{tag: "", folder: "pkg/server/provider", test: "TestAuditsDoNotFillTheLog", file: "pkg/server/provider/log.go",
			old: "if !r.logged.IsZero() && now.Sub(r.logged) < window {", new: "if false {"},
		{tag: "", folder: "pkg/evidence/revocation", test: "TestBytesAreBoundedPerNamespace", file: "pkg/evidence/revocation/revocation.go",
			old: "MaxBytes: maxBytes,", new: "MaxBytes: maxBytesTotal,"},
		{tag: "", folder: "pkg/remote/registry", test: "TestHostileAnswersAreErrorsInBoundedTimeAndMemory", file: "pkg/remote/registry/session.go",
			old: "Timeout: p.client.options.RequestTimeout}", new: "Timeout: 0}"},
		{tag: "", folder: "pkg/inspect/live", test: "TestAPreviewIsWhatTheEngineWillSayAndNeverGuesses", file: "pkg/inspect/live/read.go",
			old: "		case apierrors.IsForbidden(err):\n			r.cannotRead(policy.ObjectRef{Kind: kind.Name, Namespace: string(level)}, right)",
			new: "		case apierrors.IsForbidden(err):"},
		{tag: "e2e", folder: "pkg/server/warm", test: "TestImagesOfRunningPodsAreVerifiedAgain", file: "pkg/server/warm/warm.go",
			old: "if w.due(key, last, now) {", new: "if false && w.due(key, last, now) {"},
		{tag: "e2e", folder: "pkg/tenancy/scaffold", test: "TestKnowsTheFieldsOfFlux", file: "pkg/tenancy/scaffold/tree.go",
			old: "words(\"bucketName certSecretRef endpoint", new: "words(\"bucketName endpoint"},
		{tag: "e2e", folder: "test/gitops", test: "TestTreesAreAccepted", file: "pkg/tenancy/scaffold/clusters.go",
			old: "\"timeout\": \"5m\", \"path\": s.path", new: "\"timeout\": 5, \"path\": s.path"},
		{tag: "e2e", folder: "test/teams", test: "TestWhoMayDoWhatWithTenants", file: "charts/landwaiter/templates/personas.yaml",
			old: "(dict \"rbac.authorization.k8s.io/aggregate-to-admin\" ", new: "(dict \"rbac.authorization.k8s.io/aggregate-to-edit\" "},
		{tag: "", folder: "pkg/server/warm", test: "TestAPodTakesLittleMemory", file: "pkg/server/warm/running.go",
			old: "	return r, nil", new: "	return object, nil"},
	}
}
