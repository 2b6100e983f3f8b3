package breadth

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/pkg/evidence/cosign"
)

const (
	github    = "https://token.actions.githubusercontent.com"
	google    = "https://accounts.google.com"
	eks       = "https://oidc.eks.eu-west-1.amazonaws.com/id/5A0E1F2B3C4D5E6F708192A3B4C5D6E7"
	circle    = "https://oidc.circleci.com/org/0f1e2d3c-4b5a-4697-8897-a6b5c4d3e2f1"
	builder   = "https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_container_slsa3.yml@refs/tags/v2.1.0"
	projectID = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"
)

// judged is an identity with the strangers whom it lets in: a part of what is said of each.
type judged struct {
	issuer, issuerRegExp string // without one, GitHub's
	subject, expression  string // the expression for subjects
	condition            string // keyless.expression
	in                   []string
	nobody               string
	narrower             string
}

func (c judged) identity() cosign.Identity {
	i := cosign.Identity{Issuer: c.issuer, IssuerRegExp: c.issuerRegExp, Subject: c.subject, SubjectRegExp: c.expression}
	if i.Issuer == "" && i.IssuerRegExp == "" {
		i.Issuer = github
	}
	return i
}

// judgeAll is [Judge] with as many steps as an object has.
func judgeAll(i cosign.Identity, expression string) Judgement {
	steps := MaxSteps
	return Judge(i, expression, &steps)
}

func TestAnIdentityIsJudgedByTheStrangersWhoGetIn(t *testing.T) {
	for name, c := range map[string]judged{
		// Safe.
		"an exact workflow and branch":    {subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"tags of versions":                {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v.*`},
		"unescaped, but of one workflow":  {expression: `https://github.com/acme/app/.github/workflows/release.yml@refs/tags/v.*`},
		"anchored":                        {expression: `^https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/main$`},
		"two repositories":                {expression: `https://github\.com/acme/(app|web)/\.github/workflows/release\.yml@refs/heads/main`},
		"a commit of a workflow":          {subject: "https://github.com/acme/app/.github/workflows/release.yml@1234567890abcdef1234567890abcdef12345678"},
		"an enterprise's own issuer":      {issuer: github + "/acme", subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"a project of GitLab":             {issuer: "https://gitlab.com", subject: "https://gitlab.com/acme/team/app//.gitlab-ci.yml@refs/heads/main"},
		"a GitLab of one's own":           {issuer: "https://gitlab.acme.example", subject: "https://gitlab.acme.example/team/app//.gitlab-ci.yml@refs/heads/main"},
		"a pipeline of Buildkite":         {issuer: "https://agent.buildkite.com", subject: "https://buildkite.com/acme/release"},
		"a pipeline of CircleCI":          {issuer: circle, subject: "https://circleci.com/api/v2/projects/" + projectID + "/pipeline-definitions/" + projectID},
		"a person":                        {issuer: google, subject: "alice@acme.example"},
		"a service account of Google":     {issuer: google, subject: "release@acme-prod.iam.gserviceaccount.com"},
		"a service account of a cluster":  {issuer: eks, subject: "https://kubernetes.io/namespaces/build/serviceaccounts/release"},
		"a workload":                      {issuer: "https://spire.acme.example", subject: "spiffe://acme.example/ns/build/sa/release"},
		"two people":                      {issuer: google, expression: `(alice|bob)@acme\.example`},
		"a builder with the caller":       {subject: builder, condition: "claims.sourceRepositoryURI == 'https://github.com/acme/app'"},
		"a builder with an organization":  {subject: builder, condition: `claims.sourceRepositoryURI.startsWith("https://github.com/acme/")`},
		"a builder with an owner":         {subject: builder, condition: "claims.sourceRepositoryOwnerURI == 'https://github.com/acme' && subject != ''"},
		"anything, of one repository":     {expression: ".*", condition: "claims.sourceRepositoryURI == 'https://github.com/acme/app' && claims.sourceRepositoryRef == 'refs/heads/main' && claims.buildConfigURI == 'https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main'"},
		"an unknown provider's own names": {issuer: "https://idp.acme.example", subject: "urn:build:release"},
		"a broken expression":             {expression: `(`},

		"a person's free address":        {issuer: google, subject: "jane.doe.1987@gmail.com"},
		"similar names that are written": {expression: `https://github\.com/(acme|acm|acmee)/(app|apps|ap)/\.github/workflows/release\.yml@refs/heads/(main|maine)`},
		"branches of numbers":            {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/(main|release-[0-9]+)`},

		// Too broad.
		"anything of GitHub": {expression: ".*", in: []string{"any other owner", "another repository", "another workflow", "a pull request", "any branch"}, narrower: "https://github.com/OWNER/REPOSITORY/.github/workflows/release.yml@refs/heads/main"},
		"anything at all": {issuerRegExp: ".*", expression: ".*",
			in: []string{"any identity provider", "any other owner", "any other group", "Google"}},
		"any owner, one workflow":   {expression: `https://github\.com/.*/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"any other owner"}, narrower: "https://github.com/OWNER/app/.github/workflows/release.yml@refs/heads/main"},
		"no slash after the owner":  {expression: `https://github\.com/acme.*/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"similar name", "another repository"}},
		"an owner by its beginning": {expression: `https://github\.com/acme[^/]*/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"similar name"}, narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"an owner by its end":       {expression: `https://github\.com/[^/]*acme/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"similar name"}},
		"an organization":           {expression: `https://github\.com/acme/.*`, in: []string{"another repository", "another workflow", "a pull request", "any branch"}, narrower: "https://github.com/acme/REPOSITORY/.github/workflows/release.yml@refs/heads/main"},
		"a repository":              {expression: `https://github\.com/acme/app/.*`, in: []string{"another workflow", "a pull request", "any branch"}, narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"any ref": {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@.*`,
			in: []string{"a pull request", "any branch"}},
		"any branch":                    {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/.*`, in: []string{"any branch"}},
		"pull requests":                 {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/(heads/main|pull/[0-9]+/merge)`, in: []string{"a pull request"}},
		"a pull request by its number":  {subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/pull/12/merge", in: []string{"a pull request"}},
		"a merge request by its number": {issuer: "https://gitlab.com", subject: "https://gitlab.com/acme/app//.gitlab-ci.yml@refs/merge-requests/12/head", in: []string{"a merge request"}},
		"branches by their beginning":   {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/release-.*`, in: []string{"any branch with a similar name"}, narrower: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/release-[0-9.]*`},
		"such branches beside main":     {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/(main|release-.*)`, in: []string{"any branch with a similar name"}, narrower: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/(main|release-[0-9.]*)`},
		"such branches beside tags":     {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/(tags/v.*|heads/release/.+)`, in: []string{"any branch with a similar name"}},
		"an owner, or many":             {expression: `https://github\.com/(acme|acme-.*)/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"similar name"}, narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"a repository, or many":         {expression: `https://github\.com/acme/(app|web-.*)/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"another repository with a similar name"}},
		"a domain, or many":             {issuer: google, expression: `alice@(acme\.example|acme\..*)`, in: []string{"similar domain"}},
		"any workflow on tags":          {expression: `https://github\.com/acme/app/\.github/workflows/.*@refs/tags/v.*`, in: []string{"another workflow"}, narrower: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v[0-9].*`},
		"a public builder":              {subject: builder, in: []string{"any repository that calls this workflow"}, narrower: builder},
		"a builder, for a beginning": {subject: builder, condition: `claims.sourceRepositoryURI.startsWith("https://github.com/acme")`,
			in: []string{"another owner, whose workflow https://github.com/acme-evil/"}, narrower: builder},
		"a builder, for a part": {subject: builder, condition: `claims.sourceRepositoryOwnerURI.contains("acme")`, in: []string{"calls this one"},
			narrower: builder},
		"a builder, for an end": {subject: builder, condition: `claims.githubWorkflowRepository.endsWith("/app")`,
			in: []string{"another owner, whose workflow https://github.com/somebody-else/app/"}, narrower: builder},
		"a condition that says nothing": {expression: `https://github\.com/.*`, condition: "claims.runnerEnvironment == 'github-hosted'",
			in: []string{"any other owner"}},
		"a group of GitLab": {issuer: "https://gitlab.com", expression: `https://gitlab\.com/acme/.*`,
			in: []string{"another project", "a merge request", "any branch"}},
		"a group by its beginning": {issuer: "https://gitlab.com", expression: `https://gitlab\.com/acme.*//\.gitlab-ci\.yml@refs/heads/main`,
			in: []string{"similar name"}},
		"a dot in a group": {issuer: "https://gitlab.com", expression: `https://gitlab\.com/acme.io/app//\.gitlab-ci\.yml@refs/heads/main`,
			in: []string{"similar name"}},
		"anything, of a GitLab": {issuer: "https://gitlab.acme.example", expression: `.*`, in: []string{"any other group"}, narrower: "https://gitlab.acme.example/GROUP/PROJECT//.gitlab-ci.yml@refs/heads/main"},
		"anything, of a GitHub": {issuer: "https://git.acme.example/_services/token", expression: `.*`, in: []string{"any other owner"}, narrower: "https://git.acme.example/OWNER/REPOSITORY/.github/workflows/release.yml@refs/heads/main"},
		"anything of a GitLab":  {issuer: "https://gitlab.acme.example", expression: `https://gitlab\.acme\.example/.*`, in: []string{"any other group"}},
		"any organization of Buildkite": {issuer: "https://agent.buildkite.com", expression: `https://buildkite\.com/.*/release`,
			in: []string{"any other organization"}},
		"an organization of Buildkite": {issuer: "https://agent.buildkite.com", expression: `https://buildkite\.com/acme/.*`, in: []string{"another pipeline"}},
		"any project of CircleCI": {issuerRegExp: `https://oidc\.circleci\.com/org/.*`, expression: `https://circleci\.com/api/v2/projects/.*`,
			in: []string{"any other project"}},
		"everyone with Gmail":            {issuer: google, expression: `.*@gmail\.com`, in: []string{"everyone with an address of the domain"}},
		"any address":                    {issuer: google, expression: `.+@.+`, in: []string{"an account of Google", "anyone with a domain"}},
		"a dot in a domain":              {issuer: google, expression: `alice@acme.example.com`, in: []string{"similar domain"}},
		"a dot in a domain, of many":     {issuer: google, expression: `.*@mail.acme-corp.io`, in: []string{"similar domain"}, narrower: "NAME@mail.acme-corp.io"},
		"a domain by its end":            {issuer: google, expression: `.*acme\.example`, in: []string{"similar domain"}},
		"a domain":                       {issuer: google, expression: `.*@acme\.example`, in: []string{"everyone with an address of the domain"}},
		"service accounts of any Google": {issuer: google, expression: `release@.*\.iam\.gserviceaccount\.com`, in: []string{"a service account of any project"}},
		"any namespace":                  {issuer: eks, expression: `https://kubernetes\.io/namespaces/.*/serviceaccounts/release`, in: []string{"every namespace"}},
		"any account of a namespace": {issuer: eks, expression: `https://kubernetes\.io/namespaces/build/serviceaccounts/.*`,
			in: []string{"every service account"}},
		"any cluster": {issuerRegExp: `https://oidc\.eks\..*\.amazonaws\.com/id/.*`,
			subject: "https://kubernetes.io/namespaces/build/serviceaccounts/release", in: []string{"a cluster of somebody else"}},
		"any trust domain": {issuer: "https://spire.acme.example", expression: `spiffe://.*/ns/build/sa/release`,
			in: []string{"any other trust domain"}},
		"a trust domain":               {issuer: "https://spire.acme.example", expression: `spiffe://acme\.example/.*`, in: []string{"another workload"}},
		"an own provider's any domain": {issuer: "https://idp.acme.example", expression: `.*@.*`, in: []string{"anyone with a domain"}},

		"a star after an owner":              {expression: `https://github\.com/acme*/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "/acmee/"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main`},
		"a question mark after an owner":     {expression: `https://github\.com/acme?/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "/acm/"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main`},
		"a plus after an owner":              {expression: `https://github\.com/acme+/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "acmee"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main`},
		"an optional dash":                   {expression: `https://github\.com/acme-?corp/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "similar name"}},
		"an owner with any number":           {expression: `https://github\.com/acme[0-9]/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "similar name"}},
		"an owner and some letters":          {expression: `https://github\.com/acme.{0,3}/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "similar name"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main`},
		"a dot in an owner":                  {expression: `https://github\.com/acme.corp/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "similar name"}},
		"any letters, a star":                {expression: `https://github\.com/(?i)acme*/app/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"an owner with a similar name", "similar name"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main`},
		"a star after a repository":          {expression: `https://github\.com/acme/shop*/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"another repository with a similar name"}, narrower: `https://github.com/acme/shop/.github/workflows/release.yml@refs/heads/main`},
		"a question mark after a repository": {expression: `https://github\.com/acme/shop?/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"/sho/"}, narrower: `https://github.com/acme/shop/.github/workflows/release.yml@refs/heads/main`},
		"a star after a branch":              {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/main*`, in: []string{"any branch with a similar name"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main`},
		"anything after a branch":            {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/main.*`, in: []string{"any branch with a similar name"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main`},
		"anything after another branch":      {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/dev.*`, in: []string{"any branch with a similar name"}, narrower: `https://github.com/acme/app/.github/workflows/release.yml@refs/heads/dev`},
		"an owner, or any":                   {expression: `https://github\.com/(acme|.+)/shop/\.github/workflows/release\.yml@refs/heads/main`, in: []string{"any other owner"}, narrower: `https://github.com/OWNER/shop/.github/workflows/release.yml@refs/heads/main`},
		"a star after a group": {issuer: "https://gitlab.com", expression: `https://gitlab\.com/acme*/app//\.gitlab-ci\.yml@refs/heads/main`,
			in: []string{"a group with a similar name"}, narrower: `https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main`},
		"a question mark after a group": {issuer: "https://gitlab.com", expression: `https://gitlab\.com/acme?/app//\.gitlab-ci\.yml@refs/heads/main`,
			in: []string{"a group with a similar name"}, narrower: `https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main`},
		"any issuer, one person": {issuerRegExp: `https://token\.actions\.githubusercontent\.com|.*`, subject: "release@acme.example",
			in: []string{"any identity provider"}, narrower: "release@acme.example"},

		// Nobody.
		"a glob in a subject":          {subject: "https://github.com/acme/*", nobody: "no subject of GitHub Actions", narrower: "https://github.com/acme/REPOSITORY/.github/workflows/release.yml@refs/heads/main"},
		"a repository without more":    {subject: "https://github.com/acme/app", nobody: "no subject of GitHub Actions", narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"no ref":                       {subject: "https://github.com/acme/app/.github/workflows/release.yml", nobody: "no subject of GitHub Actions", narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"no scheme":                    {subject: "github.com/acme/app/.github/workflows/release.yml@refs/heads/main", nobody: "no subject of GitHub Actions"},
		"a repository as GitHub's":     {subject: "repo:acme/app:ref:refs/heads/main", nobody: "no subject of GitHub Actions"},
		"an expression without an end": {expression: `https://github\.com/acme/app`, nobody: "no subject of GitHub Actions", narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"a slash after the issuer":     {issuer: github + "/", subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main", nobody: "writes the issuer " + github},
		"an issuer without a scheme":   {issuer: "accounts.google.com", subject: "alice@acme.example", nobody: "writes the issuer " + google},
		"a workflow for Google":        {issuer: google, subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main", nobody: "no subject of Google"},
		"a domain in capitals":         {issuer: google, subject: "Ann@Acme.example", nobody: "with the domain in lower case", narrower: "Ann@acme.example"},
		"a person for GitHub":          {subject: "alice@acme.example", nobody: "such subjects are of Google"},
		"one slash for GitLab": {issuer: "https://gitlab.com", subject: "https://gitlab.com/acme/app/.gitlab-ci.yml@refs/heads/main",
			nobody: "no subject of GitLab"},
		"a glob elsewhere": {issuer: "https://idp.acme.example", subject: "*@acme.example", nobody: "a * in it stands for itself",
			narrower: `[^/]+@acme\.example`},

		// As people published them.
		"a tag with a name of its own":        {expression: `https://github\.com/acme/pilot/\.github/workflows/build\.yml@refs/tags/@acme/pilot@.*`},
		"capitals in a project":               {issuer: "https://gitlab.com", subject: "https://gitlab.com/acme/build/CNG//.gitlab-ci.yml@refs/heads/main"},
		"data residency":                      {issuer: "https://token.actions.acme.ghe.com", subject: "https://acme.ghe.com/acme/app/.github/workflows/build.yaml@refs/heads/main"},
		"Chainguard":                          {issuer: "https://issuer.enforce.dev", subject: "https://issuer.enforce.dev/85490af34ebd49d9ea1fe9370c4ef1169930fc5f/c478d8a95ab1938a"},
		"Buddy":                               {issuer: "https://eu-oidc.buddyusercontent.com", subject: "https://eu.buddy.works/acme/app/pipelines/pipeline/45289"},
		"AKS with a slash":                    {issuer: "https://oidc.prod-aks.azure.com/0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d/", subject: "https://kubernetes.io/namespaces/build/serviceaccounts/release"},
		"a tag alone":                         {expression: `^https://github.com/acme/app/.github/workflows/release.yml@refs/tags/6.6.2$`},
		"a workflow of others, by its caller": {expression: `https://github\.com/acme/shared-workflows/\.github/workflows/sign\.yml@refs/tags/v.*`, condition: "claims.sourceRepositoryURI == 'https://github.com/acme/app'"},

		"a workflow that is called":          {expression: `https://github\.com/acme/shared-workflows/\.github/workflows/sign\.yml@refs/tags/v.*`, in: []string{"of anybody if the workflow is public"}},
		"a workflow that is reused":          {expression: `https://github\.com/acme/cd/\.github/workflows/image-reuse\.yaml@refs/tags/v.*`, in: []string{"of anybody if the workflow is public"}},
		"a workflow that is called, any ref": {expression: `^https://github\.com/acme/reusable-workflows/\.github/workflows/publish\.yaml@.+$`, in: []string{"a pull request", "of anybody if the workflow is public"}},
		"a builder, by another condition": {subject: builder, condition: "claims.runnerEnvironment == 'github-hosted'",
			in: []string{"any repository that calls this workflow"}},
		"several generators":              {expression: `^https://github.com/slsa-framework/slsa-github-generator/.github/workflows/generator_.*\.yml@refs/tags/v[0-9]+\.[0-9]+\.[0-9]+$`, in: []string{"any repository that calls this workflow", "another workflow with a similar name"}},
		"a branch by its beginning":       {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/heads/main.*`, in: []string{"any branch with a similar name"}},
		"repositories by their beginning": {expression: `https://github\.com/acme/provider-[a-z0-9-]+/\.github/workflows/release\.yml@refs/tags/v[0-9].+`, in: []string{"another repository with a similar name"}},
		"an address as a branch":          {issuerRegExp: `https://(accounts\.google\.com|token\.actions\.githubusercontent\.com)`, expression: `.*@example\.com`, in: []string{"any other owner"}},
		"without a scheme, any beginning": {expression: `.*github.com/acme/.*`, in: []string{"any other owner"}},
		"a glob as an expression":         {expression: `https://github.com/*/.*/\.github/workflows/.*`, in: []string{"any other owner"}},
		"kubernetes.default": {issuerRegExp: ".*kubernetes.default.*", expression: ".*kubernetes.io/namespaces/default/serviceaccounts/default",
			in: []string{"a cluster of somebody else"}},
		"an enterprise":            {issuer: github + "/acme", expression: `https://github\.com/.*`, in: []string{"any other owner"}},
		"any issuer, one workflow": {issuerRegExp: ".*", subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main", in: []string{"any identity provider"}},
		"any enterprise":           {issuerRegExp: `https://token\.actions\.githubusercontent\.com/.+`, subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main", in: []string{"another enterprise"}},
		"any of Chainguard": {issuer: "https://issuer.enforce.dev", expression: `https://issuer\.enforce\.dev/.*`,
			in: []string{"any other organization"}},
		"any of Buddy": {issuer: "https://eu-oidc.buddyusercontent.com", expression: `https://eu\.buddy\.works/.*`,
			in: []string{"any other workspace"}},
		"any of Codefresh's account": {issuer: "https://oidc.codefresh.io", expression: "https://g.codefresh.io/codefresh-inc/.+:5672d8deb6724b6e359adf62/.+", in: []string{"another pipeline of the account"}},
		"Cloud Build of any project": {issuer: google, expression: `.*@cloudbuild\.gserviceaccount\.com`,
			in: []string{"everyone with an address of the domain"}},
		"any letters":                      {expression: `(?i)^https://github\.com/AcMe/App/\.github/workflows/release\.yml@.*$`, in: []string{"a pull request"}, narrower: "https://github.com/AcMe/App/.github/workflows/release.yml@refs/heads/main"},
		"any workflow on tags without a v": {expression: `https://github\.com/acme/app/.*@refs/tags/[0-9]+\.[0-9]+\.[0-9]+`, in: []string{"another workflow"}, narrower: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/[0-9].*`},

		"a glob of tags":           {expression: "https://github.com/acme/app/.github/workflows/release.yaml@refs/tags/*", nobody: "no subject of GitHub Actions", narrower: `https://github\.com/acme/app/\.github/workflows/release\.yaml@refs/tags/v[0-9].*`},
		"many letters v":           {expression: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v*`, nobody: "no subject of GitHub Actions", narrower: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v[0-9].*`},
		"a tag without its prefix": {subject: "https://github.com/acme/app/.github/workflows/release.yml@v1.2.3", nobody: "no subject of GitHub Actions", narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/tags/v1.2.3"},
		"a part of a tag":          {expression: "https://github.com/acme/app/.github/workflows/release.yaml@refs/tags/v", nobody: "no subject of GitHub Actions"},
		"a variable":               {subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/tags/${TAG}", nobody: "no subject of GitHub Actions", narrower: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v[0-9].*`},
		"a glob of repositories":   {subject: "https://github.com/acme/*-operator/.github/workflows/build.yml@refs/tags/v1", nobody: "a * in subject stands for itself", narrower: "https://github.com/acme/REPOSITORY/.github/workflows/build.yml@refs/tags/v1"},
		"the claim sub":            {subject: "repo:acme/app:ref:refs/heads/dev", nobody: "no subject of GitHub Actions", narrower: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/dev"},
		"the claim sub of a cluster": {issuer: eks, subject: "system:serviceaccount:build:release", nobody: "no subject of clusters of Amazon EKS",
			narrower: "https://kubernetes.io/namespaces/build/serviceaccounts/release"},
		"generated by a command": {expression: "(?i)^https://github.com/myorg/", nobody: "no subject of GitHub Actions", narrower: "https://github.com/myorg/REPOSITORY/.github/workflows/release.yml@refs/heads/main"},
		"the end of an address":  {issuer: google, expression: `@acme\.example$`, nobody: "no subject of Google", narrower: "NAME@acme.example"},
		"a glob of addresses":    {issuer: google, subject: "*@acme.example", nobody: "no subject of Google", narrower: "NAME@acme.example"},
		"no file for GitLab": {issuer: "https://gitlab.com", subject: "https://gitlab.com/acme/app@refs/heads/main", nobody: "no subject of GitLab",
			narrower: "https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main"},
		"one slash in a subgroup": {issuer: "https://gitlab.com", subject: "https://gitlab.com/acme/team/app/.gitlab-ci.yml@refs/heads/main",
			nobody: "no subject of GitLab", narrower: "https://gitlab.com/acme/team/app//.gitlab-ci.yml@refs/heads/main"},
		"Sigstore's own login": {issuer: "https://oauth2.sigstore.dev/auth", subject: "alice@acme.example", nobody: "https://github.com/login/oauth"},
		"a slash after a cluster of EKS": {issuer: eks + "/", subject: "https://kubernetes.io/namespaces/build/serviceaccounts/release",
			nobody: "writes the issuer " + eks},
		"placeholders": {expression: "^https://github.com/<org>/<repo>/.github/workflows/release.yml@refs/tags/.+$", nobody: "no subject of GitHub Actions"},
	} {
		t.Run(name, func(t *testing.T) {
			steps := MaxSteps
			found := Judge(c.identity(), c.condition, &steps)
			require.Positive(t, steps)
			var in []string
			for _, s := range found.Strangers {
				in = append(in, fmt.Sprintf("%s: %s %s", s.Who, s.Issuer, s.Subject))
			}
			said := strings.Join(in, "\n")
			if len(c.in) == 0 {
				require.Empty(t, said)
			}
			for _, want := range c.in {
				require.Contains(t, said, want)
			}
			require.False(t, c.issuerRegExp == ".*" && strings.HasPrefix(found.Narrower.Issuer, github+"/"), "nobody's enterprise: %s", found.Narrower.Issuer)
			require.Contains(t, found.Nobody, c.nobody)
			require.Equal(t, c.nobody == "", found.Nobody == "", found.Nobody)
			anybody, _ := Who(c.identity(), &steps)
			require.Equal(t, found.Nobody == "", anybody)
			if c.narrower != "" {
				require.Equal(t, c.narrower, found.Narrower.Subject+found.Narrower.SubjectRegExp)
			}
			for _, s := range found.Strangers {
				requireMatched(t, c.identity(), s)
			}
			if narrower := found.Narrower; len(found.Strangers) > 0 && found.Strangers[0].Reach > Colleagues {
				require.NotZero(t, narrower)
				again := judgeAll(narrower, found.Expression)
				require.Empty(t, again.Strangers, "%+v", narrower)
				require.Empty(t, again.Nobody, "%+v", narrower)
			}
		})
	}
}

// requireMatched asks the expressions themselves.
func requireMatched(t *testing.T, i cosign.Identity, s Stranger) {
	t.Helper()
	for _, pair := range [][3]string{{i.Issuer, i.IssuerRegExp, s.Issuer}, {i.Subject, i.SubjectRegExp, s.Subject}} {
		if pair[1] != "" {
			require.Regexp(t, regexp.MustCompile("^(?:"+pair[1]+")$"), pair[2])
		} else {
			require.Equal(t, pair[0], pair[2])
		}
	}
}

// Whoever writes a subject of one provider with the issuer of another meant the signer.
func TestTheIssuerOfAnotherProviderIsCorrectedAndNotTheSubject(t *testing.T) {
	const workflow = "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"
	for name, c := range map[string]struct{ is, want cosign.Identity }{
		"a workflow, Google's issuer": {cosign.Identity{Issuer: google, Subject: workflow}, cosign.Identity{Issuer: github, Subject: workflow}},
		"a person, GitHub's issuer": {cosign.Identity{Issuer: github, Subject: "alice@acme.example"},
			cosign.Identity{Issuer: google, Subject: "alice@acme.example"}},
		"a workflow, GitLab's issuer": {cosign.Identity{Issuer: "https://gitlab.com", Subject: workflow}, cosign.Identity{Issuer: github, Subject: workflow}},
		"GitLab's project, GitHub's": {cosign.Identity{Issuer: github, Subject: "https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main"},
			cosign.Identity{Issuer: "https://gitlab.com", Subject: "https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main"}},
		"an expression": {cosign.Identity{Issuer: google, SubjectRegExp: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v.*`}, cosign.Identity{Issuer: github, SubjectRegExp: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v.*`}},
		"a broad expression is narrowed": {cosign.Identity{Issuer: google, SubjectRegExp: `https://github\.com/acme/app/.*`},
			cosign.Identity{Issuer: github, Subject: workflow}},
		"a repository without more": {cosign.Identity{Issuer: google, Subject: "https://github.com/acme/app"},
			cosign.Identity{Issuer: github, Subject: workflow}},
	} {
		t.Run(name, func(t *testing.T) {
			judged := judgeAll(c.is, "")
			require.NotEmpty(t, judged.Nobody)
			require.Equal(t, c.want, judged.Narrower)
			again := judgeAll(c.want, "")
			require.Empty(t, again.Nobody)
			require.Empty(t, again.Strangers)
		})
	}
}

// Fulcio writes one issuer for the subjects of a public provider.
func TestAnIssuerThatNoSuchSubjectHasIsCorrected(t *testing.T) {
	const workflow = "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"
	for _, c := range []struct{ issuer, subject, want string }{
		{"https://github.com", workflow, github},
		{"https://github.com/", workflow, github},
		{"https://api.github.com", workflow, github},
		{"https://actions.github.com", workflow, github},
		{"https://githubusercontent.com", workflow, github},
		{"https://token.action.githubusercontent.com", workflow, github},
		{"https://tokens.actions.githubusercontent.com", workflow, github},
		{"https://token.actions.githubusercontent.co", workflow, github},
		{"https://acounts.google.com", "alice@acme.example", google},
		{"https://google.com", "alice@acme.example", google},
		{"https://github.com", "alice@acme.example", "https://github.com/login/oauth"},
		{"https://login.microsoft.online.com", "alice@acme.example", "https://login.microsoftonline.com"},
		{"https://api.gitlab.com", "https://gitlab.com/acme/app//.gitlab-ci.yml@refs/heads/main", "https://gitlab.com"},
		{"https://buildkite.com", "https://buildkite.com/acme/release", "https://agent.buildkite.com"},

		{"https://github.acme.example/_services/token", "https://github.acme.example/acme/app/.github/workflows/release.yml@refs/heads/main", ""},
		{"https://token.actions.acme.ghe.com", "https://acme.ghe.com/acme/app/.github/workflows/release.yml@refs/heads/main", ""},
		{"https://gitlab.acme.example", "https://gitlab.acme.example/acme/app//.gitlab-ci.yml@refs/heads/main", ""},
		{"https://gitlab.co", "https://gitlab.co/acme/app//.gitlab-ci.yml@refs/heads/main", ""},
		{"https://gitlab.co", ".*", ""},
		{"https://accounts.acme.example", "alice@acme.example", ""},
		{"https://login.microsoftonline.com/0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d/v2.0", "alice@acme.example", ""},
		{"https://securetoken.google.com/acme", "alice@acme.example", ""},
		{"https://spire.acme.example", "spiffe://acme.example/ns/build/sa/release", ""},
	} {
		for _, i := range []cosign.Identity{{Issuer: c.issuer, Subject: c.subject}, {Issuer: c.issuer, SubjectRegExp: regexp.QuoteMeta(c.subject)}} {
			if c.subject == ".*" {
				i.Subject, i.SubjectRegExp = "", c.subject
			}
			judged := judgeAll(i, "")
			require.Equal(t, c.want == "", judged.Nobody == "", "%+v: %s", i, judged.Nobody)
			if c.want != "" {
				require.Equal(t, c.want, judged.Narrower.Issuer, "%+v", i)
			}
			steps := MaxSteps
			anybody, _ := Who(i, &steps)
			require.Equal(t, c.want == "", anybody, "%+v", i)
		}
	}
}

func TestFluxMatchesAPartOfEachAlternative(t *testing.T) {
	const app = "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"
	for subject, in := range map[string]string{
		"https://github.com/acme/app|https://github.com/acme/web": "a pull request",
		"^https://github\\.com/acme/app/.+|.+/web$":               "any other owner",
		"^" + regexp.QuoteMeta(app) + "$":                         "",
		regexp.QuoteMeta(app):                                     "any branch with a similar name",
	} {
		steps := MaxSteps
		judged := Flux("^"+regexp.QuoteMeta(github)+"$", subject, &steps)
		if in == "" {
			require.Empty(t, judged.Strangers, subject)
		} else {
			require.Contains(t, judged.Named(), in, subject)
		}
		require.Empty(t, judged.Nobody, subject)
	}
}

func TestJudgingEnds(t *testing.T) {
	for _, expression := range []string{strings.Repeat("(a|b)*", 100), strings.Repeat(".*", 400), `(https://github\.com/){2}(a*)*b{500}`,
		strings.Repeat(`[^/]*/?`, 140)} {
		judgeAll(cosign.Identity{IssuerRegExp: ".*", SubjectRegExp: expression}, "")
	}
}

func TestPeopleSignWithAnAddress(t *testing.T) {
	for name, c := range map[string]struct {
		judged
		people bool
	}{
		"an address":                         {judged{issuer: google, subject: "alice@acme.example"}, true},
		"a domain":                           {judged{issuer: google, expression: `.+@acme\.example`}, true},
		"an address of a provider of theirs": {judged{issuer: "https://dex.acme.example", subject: "alice@acme.example"}, true},
		"an address of any provider":         {judged{issuerRegExp: `https://.*`, subject: "alice@acme.example"}, true},
		"a workflow":                         {judged{subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"}, false},
		"workflows":                          {judged{expression: `https://github\.com/acme/app/.*`}, false},
		"a pipeline of a " +
			"GitLab of theirs": {judged{issuer: "https://gitlab.acme.example", subject: "https://gitlab.acme.example/app//.gitlab-ci.yml@refs/heads/main"}, false},
		"an address of a workflow": {judged{subject: "alice@acme.example"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			steps := MaxSteps
			_, people := Who(c.identity(), &steps)
			require.Equal(t, c.people, people)
		})
	}
}

func TestWhatIsNoIdentityIsNotJudged(t *testing.T) {
	for _, i := range []cosign.Identity{{}, {Issuer: github, IssuerRegExp: github, Subject: "s"}, {Issuer: github, Subject: "s", SubjectRegExp: "s"},
		{Issuer: github, InsecureIgnoreIssuer: true, Subject: "s"}, {Issuer: github, SubjectRegExp: "("}} {
		steps := MaxSteps
		anybody, people := Who(i, &steps)
		require.True(t, anybody)
		require.False(t, people)
	}
}

func FuzzJudge(f *testing.F) {
	for _, expression := range []string{".*", `https://github\.com/acme.*`, `\bx\B`, `(?i)HTTPS://.*`, `.*@gmail.com`, `spiffe://[^/]+/x`, `[^a]*`} {
		f.Add(github, expression, true)
		f.Add("https://accounts.google.com/", expression, false)
	}
	f.Fuzz(func(t *testing.T, issuer, subject string, exact bool) {
		i := cosign.Identity{Issuer: issuer, SubjectRegExp: subject}
		if exact {
			i = cosign.Identity{IssuerRegExp: issuer, Subject: subject}
		}
		for _, s := range judgeAll(i, "").Strangers {
			requireMatched(t, i, s)
		}
	})
}

func BenchmarkJudge(b *testing.B) {
	for name, i := range map[string]cosign.Identity{
		"exact": {Issuer: github, Subject: "https://github.com/acme/app/.github/workflows/release.yml@refs/heads/main"},
		"tags":  {Issuer: github, SubjectRegExp: `https://github\.com/acme/app/\.github/workflows/release\.yml@refs/tags/v.*`},
		"all":   {IssuerRegExp: ".*", SubjectRegExp: ".*"},
		"worst": {IssuerRegExp: ".*", SubjectRegExp: strings.Repeat(`[^/]*/?`, 140)},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				judgeAll(i, "")
			}
		})
	}
}

// The group of a subgroup owns it.
func TestASubgroupIsNoStranger(t *testing.T) {
	judged := judgeAll(cosign.Identity{Issuer: "https://gitlab.com", SubjectRegExp: `https://gitlab\.com/acme/.*`}, "")
	require.NotContains(t, judged.Named(), "similar name")
	require.Equal(t, Insiders, judged.Reach())
	require.Equal(t, "https://gitlab.com/acme/PROJECT//.gitlab-ci.yml@refs/heads/main", judged.Narrower.Subject)
}
