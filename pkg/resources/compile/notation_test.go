package compile_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/remote/external"
	"github.com/landwaiter/landwaiter/pkg/remote/registry"
	"github.com/landwaiter/landwaiter/pkg/resources/resolve"
	"github.com/landwaiter/landwaiter/test/kit/fixture"
	"github.com/landwaiter/landwaiter/test/kit/written"
)

const awsProfile = "arn:aws:signer:eu-west-1:123456789012:/signing-profiles/release"

// certificates is a trust store's specification with a new authority in it.
func certificates(t *testing.T, kind, more string) string {
	t.Helper()
	root, err := fixture.NewAuthority("root")
	require.NoError(t, err)
	return "type: " + kind + "\n" + more + "source:\n  inline: |\n    " + strings.ReplaceAll(strings.TrimSpace(string(root.CertificatePEM)), "\n", "\n    ")
}

// asked collects the identities that ask AWS Signer, and for whom.
type asked struct {
	namespaces []verify.Namespace
	identities []external.Identity
	revocation []verify.Namespace
}

// outsideOf returns what is outside of the tests, and collects who asks for revocation.
func outsideOf(a *asked) resolve.Outside {
	outside := a.outside()
	outside.Registry = func(access registry.Access) verify.Registry { return &written.NoRegistry{Access: access} }
	return outside
}

func (a *asked) outside() resolve.Outside {
	return resolve.Outside{
		Registry: func(registry.Access) verify.Registry { return nil },
		Revocation: func(namespace verify.Namespace) http.RoundTripper {
			a.revocation = append(a.revocation, namespace)
			return http.DefaultTransport
		},
		AWSSigner: func(namespace verify.Namespace, as external.Identity) external.RevokedOf {
			a.namespaces, a.identities = append(a.namespaces, namespace), append(a.identities, as)
			return func(context.Context, external.AWSSignature) ([]string, error) { return nil, nil }
		},
	}
}

func TestVerifiersOfSigningAuthoritiesSayWhatTheyNeed(t *testing.T) {
	const (
		authorities = "signingAuthorities: {trustStoreRefs: [{name: authorities}]}"
		access      = "awsSigner: {secretRef: {name: aws}}\n"
		aws         = "awsSigner: {profiles: [\"" + awsProfile + "\"]}"
		refused     = "this version's CRD refuses it"
	)
	credentials := "kind: Secret\nmetadata: {name: aws, namespace: team-a}\nstringData: {accessKeyID: AKID, secretAccessKey: s}"
	for name, c := range map[string]struct {
		store, notation, want string
	}{
		"signing authority":             {"", authorities + ", trustedIdentities: [\"*\"]", ""},
		"AWS Signer":                    {access, authorities + ", " + aws, ""},
		"AWS Signer without revocation": {"", authorities + ", awsSigner: {profiles: [\"" + awsProfile + "\"], revocation: Ignore}", ""},
		"nobody who asks AWS Signer":    {"", authorities + ", " + aws, "configures the identity for AWS Signer: set spec.awsSigner there"},
		"no signing authorities":        {"", "signingAuthorities: {trustStoreRefs: []}, trustedIdentities: [\"*\"]", refused},
		"AWS Signer without its root":   {"", "trustStoreRefs: [{name: certificates}], " + aws, refused},
		"AWS Signer and certificates":   {access, "trustStoreRefs: [{name: certificates}], " + authorities + ", " + aws, refused},
		"timestamps of nobody":          {"", authorities + ", trustedIdentities: [\"*\"], timestamps: {trustStoreRefs: [{name: authorities}]}", refused},
		"certificates as authorities": {"", "signingAuthorities: {trustStoreRefs: [{name: certificates}]}, trustedIdentities: [\"*\"]",
			"it must be of type SigningAuthorities"},
		"authorities as certificates": {"", "trustStoreRefs: [{name: authorities}], trustedIdentities: [\"*\"]", "it must be of type Certificates"},
		"no identity":                 {"", authorities, "without trusted identities"},
		"a profile of every account": {access, authorities + ", awsSigner: {profiles: [\"arn:aws:signer:eu-west-1:*:/signing-profiles/release\"]}",
			"not the full ARN"},
		"every profile":               {access, authorities + ", awsSigner: {profiles: [\"*\"]}", "not the full ARN"},
		"no profile":                  {access, authorities + ", awsSigner: {profiles: []}", "every AWS customer"},
		"another word for revocation": {access, authorities + ", awsSigner: {profiles: [\"" + awsProfile + "\"], revocation: Maybe}", refused},
		"a ServiceAccount with a role": {"awsSigner: {serviceAccount: {name: signer, aws: {roleARN: \"arn:aws:iam::123456789012:role/signer\"}}}\n",
			authorities + ", " + aws, ""},
		"a ServiceAccount without a role": {"awsSigner: {serviceAccount: {name: signer}}\n", authorities + ", " + aws, refused},
		"a namespace as the pod":          {"awsSigner: {}\n", authorities + ", " + aws, "spec.awsSigner needs secretRef or serviceAccount"},
		"credentials that are not there":  {"awsSigner: {secretRef: {name: other}}\n", authorities + ", " + aws, "Secret team-a/other does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			var a asked
			objects := written.Objects(t, credentials, written.Object("TrustStore", "team-a", "authorities", certificates(t, "SigningAuthorities", c.store)),
				written.Object("TrustStore", "team-a", "certificates", certificates(t, "Certificates", "")),
				written.Object("Verifier", "team-a", "release", "type: Notation\nnotation: {"+c.notation+"}"))
			if c.want == refused {
				objects = written.AsRead(t, objects)
			}
			_, problems := resolve.Empty(a.outside()).Next(resolve.Group(objects), nil)
			if c.want == "" {
				require.Empty(t, problems)
				return
			}
			require.NotEmpty(t, problems)
			require.Contains(t, fmt.Sprint(problems), c.want)
		})
	}
}

func TestAWSSignerAccessIsForSigningAuthorities(t *testing.T) {
	var a asked
	credentials := "kind: Secret\nmetadata: {name: aws, namespace: team-a}\nstringData: {accessKeyID: AKID, secretAccessKey: s}"
	_, problems := resolve.Empty(a.outside()).
		Next(resolve.Group(
			written.AsRead(t,
				written.Objects(t, credentials,
					written.Object("TrustStore", "team-a", "certificates", certificates(t, "Certificates", "awsSigner: {secretRef: {name: aws}}\n"))))), nil)
	require.Contains(t, fmt.Sprint(problems), "spec.awsSigner is only for spec.type SigningAuthorities")
}

// Only a ClusterTrustStore has the identity of the pod, and it asks for the namespaces
// whose Verifiers name it.
func TestAWSSignerIsAskedAsTheTrustStoreSays(t *testing.T) {
	var a asked
	_, problems := resolve.Empty(a.outside()).Next(resolve.Group(written.Objects(t,
		written.Object("ClusterTrustStore", "", "aws", certificates(t, "SigningAuthorities", "awsSigner: {}\n")),
		written.Object("Verifier", "team-a", "release", "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{kind: ClusterTrustStore, name: "+
			"aws}]}\n  awsSigner: {profiles: [\""+awsProfile+"\"]}"),
	)), nil)
	require.Empty(t, problems)
	pod, err := external.Pod(verify.Cluster)
	require.NoError(t, err)
	require.Equal(t, []external.Identity{pod}, a.identities)
	require.Equal(t, []verify.Namespace{"team-a"}, a.namespaces)
}

func TestATeamsOwnAuthorityHasNothingAskedAsTheCluster(t *testing.T) {
	var a asked
	_, problems := resolve.Empty(a.outside()).Next(resolve.Group(written.Objects(t,
		written.Object("ClusterTrustStore", "", "aws", certificates(t, "SigningAuthorities", "awsSigner: {}\n")),
		written.Object("TrustStore", "team-a", "own", certificates(t, "SigningAuthorities", "")),
		written.Object("Verifier", "team-a", "release", "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{name: own}, {kind: ClusterTrustStore, "+
			"name: aws}]}\n  awsSigner: {profiles: [\""+awsProfile+"\"]}"),
	)), nil)
	require.Contains(t, fmt.Sprint(problems), "name trust stores of one kind")
	require.Empty(t, a.identities)
}

func TestABuildThatCannotAskAWSSignerSaysSo(t *testing.T) {
	verifier := written.Object("Verifier", "team-a", "release", "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{name: authorities}]}\n  "+
		"awsSigner: {profiles: [\""+awsProfile+"\"]%s}")
	store := written.Object("TrustStore", "team-a", "authorities", certificates(t, "SigningAuthorities", ""))
	_, problems := written.Compiled(written.Objects(t, store, fmt.Sprintf(verifier, "")))
	require.Contains(t, fmt.Sprint(problems), "use an image whose tag ends in -full, or set spec.notation.awsSigner.revocation to Ignore")
	_, problems = written.Compiled(written.Objects(t, store, fmt.Sprintf(verifier, ", revocation: Ignore")))
	require.Empty(t, problems)
}

// Verifiers hold the identity that asks, so they are compiled again when it changes.
func TestARotatedSecretOfAWSSignerReachesNamespaces(t *testing.T) {
	store := written.Object("ClusterTrustStore", "", "aws", certificates(t, "SigningAuthorities", "awsSigner: {secretRef: {name: aws}}\n"))
	const spec = "type: Notation\nnotation:\n  signingAuthorities: {trustStoreRefs: [{kind: ClusterTrustStore, name: aws}]}\n  awsSigner: {profiles: [\"" +
		awsProfile + "\"]}"
	for _, verifier := range []string{written.Object("Verifier", "team-a", "release", spec), written.Object("ClusterVerifier", "", "release", spec)} {
		var a asked
		with := func(key string) []string {
			return []string{store, "kind: Secret\nmetadata: {name: aws, namespace: landwaiter-system}\nstringData: {accessKeyID: AKID, secretAccessKey: " + key + "}",
				written.Namespace("team-a", "1"), verifier}
		}
		snapshot, problems := resolve.Empty(a.outside()).Next(resolve.Group(written.Objects(t, with("old")...)), nil)
		require.Empty(t, problems)
		before := snapshot.For("team-a").Tiers[0].Verifiers[0].Checker
		snapshot, _ = snapshot.Next(resolve.Group(written.Objects(t, with("new")...)).Only(verify.Cluster), nil)
		require.NotSame(t, before, snapshot.For("team-a").Tiers[0].Verifiers[0].Checker)
	}
}
