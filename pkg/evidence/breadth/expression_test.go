package breadth

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

// All are keyless.expression of an identity whose subject can be anything.
func TestAnExpressionIsJudgedByTheStrangersWhoMeetIt(t *testing.T) {
	const (
		workflow = "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"
		project  = "https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main"
	)
	for expression, c := range map[string]struct {
		issuer string
		reach  Reach
		in     []string
	}{
		// Right.
		`subject == "` + workflow + `"`: {},
		`"` + workflow + `" == subject`: {},
		`subject in ["` + workflow + `", "https://github.com/acme/web/.github/workflows/release.yml@refs/heads/main"]`: {},
		`["` + workflow + `"].exists(x, ` +
			`subject == x)`: {},
		`subject.startsWith("https://github.com/acme/app/.github/workflows/release.yml@refs/tags/v")`: {},
		`subject.startsWith("https://github.com/acme/app/") && ` +
			`subject.endsWith("/.github/workflows/release.yml@refs/heads/main")`: {},
		`subject.matches("^https://github\\.com/acme/app/\\.github/workflows/release\\.yml@refs/tags/v[0-9.]+$")`: {},
		`claims.buildConfigURI == "` + workflow +
			`"`: {},
		`claims["buildConfigURI"] == "` + workflow + `" && claims.runnerEnvironment == ` +
			`"self-hosted"`: {},
		`claims.?buildSignerURI.orValue("") == "` + workflow +
			`"`: {},
		`claims.sourceRepositoryURI == "https://github.com/acme/app" && claims.sourceRepositoryRef == "refs/heads/main" && ` +
			`subject.contains("/.github/workflows/release.yml@")`: {},
		`claims.sourceRepositoryIdentifier == "4711" && claims.sourceRepositoryRef == "refs/heads/main" && ` +
			`subject.contains("/.github/workflows/release.yml@")`: {},
		`claims.sourceRepositoryURI == "https://github.com/acme/app" && claims.sourceRepositoryDigest == "` + strings.Repeat("a", 40) +
			`"`: {},
		`claims.sourceRepositoryURI == "https://github.com/acme/app" && claims.deploymentEnvironment == ` +
			`"production"`: {},
		`claims.buildConfigURI == "` + project +
			`"`: {issuer: "https://gitlab.com"},
		`subject == "ann@acme.example" || subject == ` +
			`"bob@acme.example"`: {issuer: google},
		`subject.endsWith("@acme.example")`: {issuer: google, reach: Colleagues,
			in: []string{"everyone with an address of the domain"}},
		`subject == "https://kubernetes.io/namespaces/build/serviceaccounts/release"`: {issuer: eks},

		// Anyone.
		`claims.sourceRepositoryOwnerURI.startsWith("https://github.com/iris-corp")`: {reach: Anyone,
			in: []string{"similar name (https://github.com/iris-corp-evil/", "a pull request"}},
		`subject.startsWith("https://github.com/iris-corp")`: {reach: Anyone,
			in: []string{"https://github.com/iris-corp-evil/"}},
		`claims.sourceRepositoryURI.contains("iris-corp")`: {reach: Anyone, in: []string{"iris-corp"}},
		`claims.sourceRepositoryURI.matches("iris-corp")`:  {reach: Anyone, in: []string{"iris-corp"}},
		`subject.matches("https://github.com/iris-corp")`: {reach: Anyone,
			in: []string{"https://github.com/iris-corp-evil/"}},
		`claims.githubWorkflowRepository.startsWith("iris-corp")`: {reach: Anyone,
			in: []string{"https://github.com/iris-corp-evil/"}},
		`claims.sourceRepositoryURI.endsWith("/shop")`:                {reach: Anyone, in: []string{"any other owner"}},
		`claims.sourceRepositoryRef == "refs/heads/release-4"`:        {reach: Anyone, in: []string{"any other owner"}},
		`claims.runnerEnvironment == "self-hosted" || subject == "x"`: {reach: Anyone, in: []string{"any other owner"}},
		`subject == "` + workflow + `" || subject.startsWith("https://github.com/iris-corp")`: {reach: Anyone,
			in: []string{"https://github.com/iris-corp-evil/"}},
		`["iris-corp", "iris"].exists(x, claims.sourceRepositoryOwnerURI.endsWith(x))`: {reach: Anyone,
			in: []string{"https://github.com/evil-iris-corp/"}},
		`has(claims.sourceRepositoryURI) && claims.sourceRepositoryURI.contains("iris-corp/shop")`: {reach: Anyone,
			in: []string{"https://github.com/evil-iris-corp/shop"}},
		`subject.endsWith("iris-corp.com")`: {issuer: google, reach: Anyone,
			in: []string{"@evil-iris-corp.com"}},
		`claims.sourceRepositoryURI.contains("/iris-corp/")`: {issuer: "https://gitlab.com", reach: Anyone,
			in: []string{"https://gitlab.com/somebody-else/iris-corp/"}},
		`subject.contains("/iris")`: {issuer: "https://agent.buildkite.com", reach: Anyone,
			in: []string{"https://buildkite.com/somebody-else/iris"}},

		// Insiders.
		`claims.sourceRepositoryOwnerURI == "https://github.com/iris-corp"`: {reach: Insiders,
			in: []string{"another repository of the owner (https://github.com/iris-corp/another-repository/", "a pull request", "any branch"}},
		`subject.startsWith("https://github.com/iris-corp/")`: {reach: Insiders,
			in: []string{"another repository", "a pull request", "any branch"}},
		`claims.sourceRepositoryOwnerIdentifier == "4711"`: {reach: Insiders,
			in: []string{"another repository", "a pull request"}},
		`claims.sourceRepositoryIdentifier == "4711"`: {reach: Insiders,
			in: []string{"a pull request", "any branch"}},
		`claims.sourceRepositoryURI == "https://github.com/iris-corp/shop"`: {reach: Insiders,
			in: []string{"another workflow", "a pull request", "any branch"}},
		`claims.sourceRepositoryURI == "https://github.com/iris-corp/shop" && claims.buildTrigger ` +
			`== "release"`: {reach: Insiders, in: []string{"another workflow", "any branch"}},
		`claims.sourceRepositoryURI.startsWith("https://github.com/iris-corp/shop") && claims.sourceRepositoryRef == ` +
			`"refs/heads/main"`: {reach: Insiders, in: []string{"another repository with a similar name"}},
		`claims.runInvocationURI.startsWith("https://github.com/iris-corp/shop/")`: {reach: Insiders,
			in: []string{"a pull request", "any branch"}},
		`subject.startsWith("https://github.com/iris-corp/shop/.github/workflows/release.yml@")`: {reach: Insiders, in: []string{"a pull request", "any branch"}},
		`claims.sourceRepositoryURI == ` +
			`"https://gitlab.com/iris-corp/shop"`: {issuer: "https://gitlab.com", reach: Insiders, in: []string{"a merge request", "any branch"}},
		`subject.startsWith("spiffe://acme.example/")`: {
			issuer: "https://spire.acme.example", reach: Insiders, in: []string{"another workload"}},
	} {
		t.Run(expression, func(t *testing.T) {
			identity := judged{issuer: c.issuer, expression: ".*"}.identity()
			steps := MaxSteps
			found := Judge(identity, expression, &steps)
			require.Greater(t, steps, MaxSteps/4, "the steps of an object are for more than one identity")
			found.Strangers = append([]Stranger{}, found.Strangers...)
			require.Equal(t, c.reach, found.Reach(), found.Strangers)
			require.Empty(t, found.Nobody)
			var in []string
			for _, s := range found.Strangers {
				in = append(in, s.Who+" ("+s.Subject+")")
				requireMatched(t, identity, s)
			}
			for _, want := range c.in {
				require.Contains(t, strings.Join(in, "\n"), want)
			}
			if c.reach > Colleagues {
				require.NotZero(t, found.Narrower)
				require.Empty(t, judgeAll(found.Narrower, found.Expression).Strangers, "%+v", found.Narrower)
			}
		})
	}
}

func TestJudgingAnExpressionEnds(t *testing.T) {
	for _, expression := range []string{
		strings.Repeat(`subject.startsWith("https://github.com/a") || `, 60) + "true",
		strings.Repeat(`(subject.contains("a") || claims.sourceRepositoryURI.matches("a.*b.*c")) && `, 40) + "true",
		`subject.matches("` + strings.Repeat(".*a", 200) + `")`,
	} {
		steps := MaxSteps
		Judge(cosign.Identity{IssuerRegExp: ".*", SubjectRegExp: ".*"}, expression, &steps)
		require.Greater(t, steps, -MaxSteps/8, expression)
	}
}
