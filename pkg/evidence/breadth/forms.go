package breadth

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/landwaiter/landwaiter/pkg/decide/cel"
)

// form is the format of a provider's signer names: a subject is the sequence of its parts. Issuers and the forms of
// public providers match Fulcio's configuration (sigstore/fulcio, config/identity/config.yaml).
type form struct {
	name string
	// issuers matches the provider's issuers; others is an expression for strangers' own issuers whose signer
	// names do not identify the issuer, "" if there are none.
	issuers, others string
	// public means that anyone can sign with it. All signers of other providers belong to their operator.
	public bool
	parts  []part

	compiled
}

// compiled has the expressions of a form, compiled once.
type compiled struct {
	// issuer and other are compiled from issuers and others; issued matches issuers, too.
	issuer, other *cel.Pattern
	issued        *regexp.Regexp
	// whole matches all subjects. Subject also has a group for each part.
	whole   *cel.Pattern
	subject *regexp.Regexp
}

// ready returns f with its expressions compiled.
func (f form) ready() form {
	values := make([]string, len(f.parts))
	for i, p := range f.parts {
		values[i] = p.values
	}
	f.compiled = compiled{whole: pattern(language(values)), subject: regexp.MustCompile("^(" + strings.Join(values, ")(") + ")$")}
	if f.issuers != "" {
		f.issuer, f.issued = pattern(f.issuers), regexp.MustCompile("^(?:"+f.issuers+")$")
	}
	if f.others != "" {
		f.other = pattern(f.others)
	}
	return f
}

// part is a part of a subject.
type part struct {
	// name is "" for constant text.
	name string
	// values matches the possible values of the part.
	values string
	// usual is an example value that shows that the reader has to insert a real one.
	usual, given string
	// others are strangers' values.
	others []other
	// similar describes the owner of a value that only begins or ends like the right one, "" if there is none. Near
	// is the owner's reach.
	similar string
	near    Reach
	// first matches the first segment of a value, "" if a value has one: the others belong to the owner of the first.
	first string
}

// other is a stranger's value of a part.
type other struct {
	who    string
	values string // a regular expression
	reach  Reach
}

// text is a constant part of all subjects.
func text(s string) part { return part{values: regexp.QuoteMeta(s)} }

// strange is the name of strangers.
const strange = "somebody-else"

// forms returns the forms of public identity providers and clusters. Nobody may change the result: compiling their
// expressions takes longer than most judgements.
var forms = sync.OnceValue(func() []form { //nolint:gochecknoglobals // nobody sees it change
	list := publicForms()
	for i := range list {
		list[i] = list[i].ready()
	}
	return list
})

// printable matches every possible subject.
var printable = sync.OnceValue(func() *cel.Pattern { return pattern(`[ -~]+`) }) //nolint:gochecknoglobals // nobody sees it change

func publicForms() []form {
	list := []form{
		{name: "GitHub Actions", issuers: `https://token\.actions\.githubusercontent\.com`, public: true, parts: githubParts("github.com")},
		{name: enterprise, issuers: `https://token\.actions\.githubusercontent\.com/[0-9A-Za-z._-]+`,
			others: `https://token\.actions\.githubusercontent\.com/somebody-else`,
			parts:  githubParts("github.com")},
		{name: "GitLab", issuers: `https://gitlab\.com`, public: true, parts: gitlabParts("gitlab.com", Anyone)},
		{name: "Buildkite", issuers: `https://agent\.buildkite\.com`, public: true, parts: []part{
			text("https://buildkite.com/"),
			{name: "organization", values: slug, usual: "acme", given: "ORGANIZATION", similar: "an organization with a similar name", near: Anyone,
				others: []other{{"any other organization", strange, Anyone}}},
			text("/"),
			{name: "pipeline", values: slug, usual: "release", given: "PIPELINE",
				others: []other{{"another pipeline of the organization", "another-pipeline", Insiders}}},
		}},
		{name: "CircleCI", issuers: `https://oidc\.circleci\.com(/org/` + uuid + `)?`, public: true, parts: []part{
			text("https://circleci.com/api/v2/projects/"),
			{name: "project", values: uuid, usual: "11111111-2222-4333-8444-555555555555", given: "11111111-2222-4333-8444-555555555555",
				others: []other{{"any other project", "99999999-9999-4999-8999-999999999999", Anyone}}},
			text("/pipeline-definitions/"),
			{name: "pipeline definition", values: uuid, usual: "66666666-7777-4888-8999-000000000000", given: "66666666-7777-4888-8999-000000000000",
				others: []other{{"another pipeline of the project", "99999999-9999-4999-8999-999999999999", Insiders}}},
		}},
		{name: "Codefresh", issuers: `https://oidc\.codefresh\.io`, public: true, parts: []part{
			text("https://g.codefresh.io/"),
			{name: "account", values: slug, usual: "acme", given: "ACCOUNT", similar: "an account with a similar name", near: Anyone,
				others: []other{{"any other account", strange, Anyone}}},
			text("/"),
			{name: "pipeline", values: slug + "/" + slug, usual: "app/release", given: "PROJECT/PIPELINE",
				others: []other{{"another pipeline of the account", "another/pipeline", Insiders}}},
			{values: `:[0-9a-f]+/[0-9a-f]+`, usual: ":64f447c02199f903000f20aa/64f447c02199f903000f20ab"},
		}},
		{name: "Buddy", issuers: `https://(?:eu-|asia-)?oidc\.buddyusercontent\.com`, public: true, parts: []part{
			{values: `https://(?:app|eu|asia)\.buddy\.works/`, usual: "https://app.buddy.works/"},
			{name: "workspace", values: slug, usual: "acme", given: "WORKSPACE", similar: "a workspace with a similar name", near: Anyone,
				others: []other{{"any other workspace", strange, Anyone}}},
			text("/"),
			{name: "project", values: slug, usual: "app", given: "PROJECT",
				others: []other{{"another project of the workspace", "another-project", Insiders}}},
			text("/pipelines/pipeline/"),
			{name: "pipeline", values: `[0-9]+`, usual: "4711", given: "4711",
				others: []other{{"another pipeline of the project", "99999999", Insiders}}},
		}},
		{name: "Chainguard", issuers: `https://issuer\.enforce\.dev`, public: true, parts: []part{
			text("https://issuer.enforce.dev/"),
			{name: "organization", values: `[0-9a-f]{40}`, usual: strings.Repeat("ab", 20), given: strings.Repeat("0", 40),
				others: []other{{"any other organization", strings.Repeat("9", 40), Anyone}}},
			text("/"),
			{name: "identity", values: `[0-9a-f]{16}(?:/[0-9a-f]{16})*`, usual: strings.Repeat("ab", 8), given: strings.Repeat("0", 16),
				others: []other{{"another identity of the organization", strings.Repeat("9", 16), Insiders}}},
		}},
	}
	for _, f := range [][2]string{
		{"Google", `https://accounts\.google\.com`}, {"GitHub's login", `https://github\.com/login/oauth`},
		{"Microsoft", `https://login\.microsoftonline\.com`},
		{"Hello", `https://issuer\.hello\.coop`},
	} {
		list = append(list, form{name: f[0], issuers: f[1], public: true, parts: mailParts()})
	}
	for _, f := range [][3]string{
		{"clusters of Amazon EKS", `https://oidc\.eks\.[a-z0-9-]+\.amazonaws\.com(\.cn)?/id/[0-9A-Z]+`, `https://oidc\.eks\.[a-z0-9-]+\.amazonaws\.com/id/9999STRANGER9999`},
		{"clusters of Azure", `https://([a-z0-9-]+\.)?(oidc|oic)\.prod-aks\.azure\.com/[0-9a-zA-Z/-]+`, `https://([a-z0-9-]+\.)?(oidc|oic)\.prod-aks\.azure\.com/[a-f0-9-]*/?99999999-9999-4999-8999-999999999999/?`},
		{"clusters of Google Cloud", `https://container\.googleapis\.com/v1/projects/[a-z0-9-]+/locations/[a-z0-9-]+/clusters/[a-z0-9-]+`, `https://container\.googleapis\.com/v1/projects/somebody-else/locations/[a-z0-9-]+/clusters/[a-z0-9-]+`},
		{"a cluster's own API server", `https://kubernetes\.default\.svc(\.[a-z0-9.-]+)?`, ""},
	} {
		list = append(list, form{name: f[0], issuers: f[1], others: f[2], public: f[2] != "", parts: accountParts()})
	}
	return list
}

// enterprise is the form of GitHub with an issuer for each enterprise.
const enterprise = "GitHub Actions of an enterprise"

// slug is a name in an address.
const slug = `[0-9A-Za-z_][0-9A-Za-z_.-]*`

// Names of branches and tags of git, without characters that only quoted names have. Tags named v or vv are
// mistakes in an expression, which has to match the whole name.
const (
	named  = `[0-9A-Za-z._+@-]`
	branch = named + `+(?:/` + named + `+)*`
	tag    = `v?[0-9A-Za-uw-z._+@-]` + named + `*(?:/` + named + `+)*|refs/tags/v(?:/` + named + `+)+`
)

// An identifier that its owner does not choose.
const uuid = `[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`

// workflowParts is the number of parts of a workflow's subject: an owner, a repository, a file and a ref, with text
// before each.
const workflowParts = 8

// githubParts is the format in which GitHub names the signing workflow (the claim
// job_workflow_ref).
func githubParts(host string) []part {
	return []part{
		text("https://" + host + "/"),
		{name: "owner", values: `[0-9A-Za-z][0-9A-Za-z-]*`, usual: "acme", given: "OWNER", similar: "an owner with a similar name", near: Anyone,
			others: []other{{"any other owner", strange, Anyone}}},
		text("/"),
		{name: "repository", values: `[0-9A-Za-z._-]+`, usual: "app", given: "REPOSITORY", similar: "another repository with a similar name",
			near:   Insiders,
			others: []other{{"another repository of the owner", "another-repository", Insiders}}},
		text("/.github/workflows/"),
		{name: "workflow", values: `[0-9A-Za-z._ -]+\.ya?ml`, usual: "release.yml", given: "release.yml",
			similar: "another workflow with a similar name", near: Insiders,
			others: []other{{"another workflow of the repository", `another\.ya?ml`, Insiders}}},
		text("@"),
		{name: "ref", values: `refs/heads/` + branch + `|refs/tags/` + tag + `|refs/pull/[0-9]+/(?:merge|head)|[0-9a-f]{40}`,
			usual: "refs/heads/main", given: "refs/heads/main",
			similar: "any branch with a similar name", near: Insiders,
			others: []other{{"a pull request", "refs/pull/[0-9]+/(?:merge|head)", Insiders},
				{"any branch", "refs/heads/somebodys-branch", Insiders}}},
	}
}

// gitlabParts is the format in which GitLab names the signing pipeline (the claim
// ci_config_ref_uri).
func gitlabParts(host string, strangers Reach) []part {
	return []part{
		text("https://" + host + "/"),
		{name: "group", values: slug + `(?:/` + slug + `)*`, usual: "acme", given: "GROUP", similar: "a group with a similar name",
			near: strangers, first: slug,
			others: []other{{"any other group or user", strange, strangers}}},
		text("/"),
		{name: "project", values: slug, usual: "app", given: "PROJECT", similar: "another project with a similar name", near: Insiders,
			others: []other{{"another project of the group", "another-project", Insiders}}},
		text("//"),
		{name: "file", values: `[0-9A-Za-z._/-]+\.ya?ml`, usual: ".gitlab-ci.yml", given: ".gitlab-ci.yml",
			others: []other{{"a pipeline from another file", `another\.ya?ml`, Insiders}}},
		text("@"),
		{name: "ref", values: `refs/heads/` + branch + `|refs/tags/` + tag + `|refs/merge-requests/[0-9]+/(?:merge|head)`,
			usual: "refs/heads/main", given: "refs/heads/main",
			similar: "any branch with a similar name", near: Insiders,
			others: []other{{"a merge request", "refs/merge-requests/[0-9]+/(?:merge|head)", Insiders},
				{"any branch", "refs/heads/somebodys-branch", Insiders}}},
	}
}

// mailParts is the format in which providers name people, and Google service accounts: an
// e-mail address.
func mailParts() []part {
	return []part{
		{name: "name", values: `[0-9A-Za-z._+-]+`, usual: "release", given: "NAME",
			others: []other{{"everyone with an address of the domain", `anybody|any\.body`, Colleagues}}},
		text("@"),
		{name: "domain", values: `(?:[0-9a-z-]+\.)+[a-z]{2,}`, usual: "example.com", given: "example.com",
			similar: "the owner of a similar domain", near: Anyone,
			others: []other{{"everyone with an account of Google", `gmail\.com`, Anyone},
				{"anyone with a domain", `somebody-else\.[a-z]{2,}`, Anyone},
				{"a service account of any project", `somebody-else\.iam\.gserviceaccount\.com|` + defaultAccounts, Anyone},
				{"everyone with a free address", freeMail, Anyone}}},
	}
}

// people reports whether the subjects are e-mail addresses.
func (f form) people() bool { return f.parts[0].name == "name" }

// mail is the form of providers that name people.
var mail = sync.OnceValue(func() form { return form{name: "people", parts: mailParts()}.ready() }) //nolint:gochecknoglobals // nobody sees it change

// freeMail are domains with addresses for anyone.
const freeMail = `(?:googlemail|outlook|hotmail|live|yahoo|icloud|aol|gmx|protonmail|fastmail|yandex|qq|163|126)\.com|` +
	`users\.noreply\.github\.com|proton\.me|gmx\.(?:net|de)|web\.de|(?:mail|yandex)\.ru`

// defaultAccounts are domains in which every project of Google Cloud has a service account.
const defaultAccounts = `(?:cloudbuild|developer|appspot)\.gserviceaccount\.com`

// free matches addresses that anyone can get.
var free = regexp.MustCompile(`@(?:` + freeMail + `|` + defaultAccounts + `|gmail\.com)$`)

// accountParts is the format in which Fulcio names a service account of Kubernetes.
func accountParts() []part {
	return []part{
		text("https://kubernetes.io/namespaces/"),
		{name: "namespace", values: `[0-9a-z](?:[0-9a-z-]*[0-9a-z])?`, usual: "build", given: "your-namespace",
			similar: "a namespace with a similar name", near: Insiders,
			others: []other{{"every namespace of the cluster", strange, Insiders}}},
		text("/serviceaccounts/"),
		{name: "service account", values: `[0-9a-z](?:[0-9a-z.-]*[0-9a-z])?`, usual: "release", given: "your-account",
			others: []other{{"every service account of the namespace", "another-account", Insiders}}},
	}
}

// The form in which SPIRE names workloads (SPIFFE-ID, section 2).
func spiffe() form {
	return form{name: "SPIFFE", parts: []part{
		text("spiffe://"),
		{name: "trust domain", values: `[0-9a-z._-]+`, usual: "example.org", given: "trust-domain.example",
			similar: "a trust domain with a similar name", near: Insiders,
			others: []other{{"any other trust domain", `somebody-else\.example`, Anyone}}},
		text("/"),
		{name: "workload", values: `[0-9A-Za-z._/-]+`, usual: "ns/build/sa/release", given: "ns/NAMESPACE/sa/ACCOUNT",
			others: []other{{"another workload of the trust domain", "ns/another/sa/workload", Insiders}}},
	}}
}

// own returns the forms of private providers: a private GitHub or GitLab, SPIRE, a provider of people, a
// cluster.
func own(issuer string) []form {
	list := []form{spiffe(), {name: "service accounts of Kubernetes", parts: accountParts()}, mail()}
	host := strings.TrimPrefix(strings.TrimPrefix(issuer, "https://"), "http://")
	host = strings.TrimPrefix(host, "token.actions.") // data residency of GitHub
	if host, _, _ = strings.Cut(host, "/"); host != "" && host != issuer {
		list = append(list, form{name: fmt.Sprintf("GitLab at %s", host), parts: gitlabParts(host, Insiders)},
			form{name: fmt.Sprintf("GitHub at %s", host), parts: githubParts(host)})
	}
	slices.SortStableFunc(list, func(a, b form) int { return cmp.Compare(rank(a, issuer), rank(b, issuer)) })
	for i := range list {
		list[i] = list[i].ready()
	}
	return list
}

// rank moves the form to the front that the name of a provider suggests.
func rank(f form, issuer string) int {
	kind, _, _ := strings.Cut(f.name, " at ")
	if kind == "GitHub" && strings.HasSuffix(issuer, "/_services/token") || strings.Contains(issuer, strings.ToLower(kind)) {
		return 0
	}
	return 1
}

// builders are repositories with reusable workflows for any repository.
func builders() []string {
	return []string{"slsa-framework/slsa-github-generator", "docker/github-builder", "docker/github-builder-experimental",
		"github/artifact-attestations-workflows", "actions/reusable-workflows"}
}

// called matches repositories and workflows whose names suggest reusable workflows.
var called = regexp.MustCompile(`/(?:\.github|workflows|actions|[0-9A-Za-z._-]*-(?:workflows|actions))/\.github/workflows/|` +
	`/\.github/workflows/[^/]*(?:reus|shared|callable|_call)[^/]*\.ya?ml@`)
