package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/landwaiter/landwaiter/test/kit/page"
)

// followed are the pages whose commands one test runs, by that test, whose file names the
// page. A block on another page needs a mark; the package comment of test/kit/page lists
// them.
func followed() map[string]string {
	const (
		admin  = "TestAnAdminInstallsUpgradesAndUninstallsWithThePagesAlone"
		teams  = "TestTheCommandsOfThePageOnTeamsWork"
		gitops = "TestTheCommandsOfThePageOnGitOpsWork"
	)
	return map[string]string{
		"docs/howto/install.md":              admin,
		"docs/reference/resources.md":        admin,
		"docs/operate/upgrade.md":            admin,
		"docs/operate/outage.md":             admin,
		"docs/operate/uninstall.md":          admin,
		"charts/landwaiter/README.md":        admin,
		"docs/operate/metrics.md":            "TestTheCommandsOfThePageWork",
		"docs/howto/air-gap.md":              "TestTheCommandsOfThePageOnSitesWithoutANetworkWork",
		"docs/howto/audit.md":                "TestTheCommandsOfThePageOnAuditsWork",
		"docs/howto/preview.md":              "TestTheCommandsOfThePageOnPreviewsWork",
		"docs/operate/cold-start.md":         "TestEveryCommandOfThePageIsTestedOrNeedsGatekeepersRepository",
		"docs/start/quickstart.md":           "TestANewcomerSeesADenialAndAnAdmissionWithTheQuickStartAlone",
		"docs/howto/install-without-helm.md": admin,
		"docs/howto/hardening.md":            admin,
		"docs/howto/enforce.md":              admin,
		"docs/howto/sign.md":                 admin,
		"docs/howto/self-service.md":         admin,
		"docs/operate/rotate.md":             admin,
		"docs/howto/trust.md":                admin,
		"docs/tutorials/first-team.md":       teams,
		"docs/howto/tenants.md":              teams,
		"docs/tutorials/platform-in-git.md":  gitops,
		"docs/howto/gitops-operate.md":       gitops,
		"docs/howto/gitops-layouts.md":       gitops,
		"docs/howto/gitops-take-over.md":     gitops,
	}
}

// writtenByPrograms are the pages that the program writes, and that have synopses for commands.
func writtenByPrograms() []string {
	return []string{"docs/reference/metrics.md"}
}

// withResources are the pages whose resources another test compiles. Resources of pages of a
// group refer to each other.
func withResources() [][]string {
	return [][]string{
		{"docs/howto/install.md"}, {"docs/howto/self-service.md"}, {"docs/tutorials/first-team.md"}, {"docs/teams/write-rules.md"}, {"docs/howto/notary-v1.md"},
		{"docs/compare/ratify.md"}, {"README.md"},
		{"docs/howto/attestations.md", "docs/howto/github-attestations.md"},
		{"docs/howto/examples/ghcr-keyless.md"}, {"docs/howto/examples/ecr-aws-signer.md"}, {"docs/howto/examples/harbor-cosign-keys.md"},
		{"docs/howto/examples/github-provenance.md"}, {"docs/howto/examples/air-gapped-cluster.md"}, {"docs/howto/examples/model-images.md"},
		{
			"docs/reference/verifier.md", "docs/reference/truststore.md", "docs/reference/store.md", "docs/reference/verificationpolicy.md",
			"docs/reference/exception.md", "docs/reference/clusterquota.md", "docs/reference/tenant.md",
			"docs/howto/trust.md", "docs/howto/registries.md", "docs/howto/mirrors.md", "docs/howto/cloud-identity.md", "docs/howto/aws-signer.md",
		},
	}
}

// pages are all Markdown files.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	require.NoError(t, filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		relative, _ := filepath.Rel(root, name)
		if entry.IsDir() && relative != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains([]string{"testdata", "bin", "node_modules"}, entry.Name())) {
			return filepath.SkipDir
		}
		if !entry.IsDir() && filepath.Ext(name) == ".md" {
			found = append(found, filepath.ToSlash(relative))
		}
		return err
	}))
	require.Contains(t, found, "docs/howto/install.md")
	return found
}

// tests are the texts of the files of all test functions, by the names of the functions.
func tests(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range []string{"api", "cmd", "config", "pkg", "test"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, folder), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, "_test.go") {
				return err
			}
			text, err := os.ReadFile(name)
			for _, function := range strings.Split(string(text), "\nfunc ")[1:] {
				if title, _, ok := strings.Cut(function, "("); ok && strings.HasPrefix(title, "Test") {
					found[title] = string(text)
				}
			}
			return err
		}))
	}
	return found
}

// looksLikeCommands finds text blocks that a reader would take for commands.
var looksLikeCommands = regexp.MustCompile(`(?m)^(\$ )?(kubectl|helm|cosign|landwaiter|make|go|docker|kustomize|bin/landwaiter) `)

// Every block of every page is run by a test, or its source says why it is not.
func TestEveryCommandOfEveryPageRunsInATestOrSaysWhyNot(t *testing.T) {
	known, blocks := tests(t), map[string][]page.Block{}
	for _, name := range pages(t) {
		read, err := page.Read(root, name)
		require.NoError(t, err)
		blocks[name] = read
	}
	for name, test := range followed() {
		require.Contains(t, known[test], name, "%s does not follow %s", test, name)
	}
	for name, read := range blocks {
		if slices.Contains(writtenByPrograms(), name) {
			continue
		}
		for _, b := range read {
			require.Empty(t, unaccounted(b, known, blocks), "%s:\n%s", b, b.Text)
		}
	}
}

// unaccounted says what is missing where nobody has a block.
func unaccounted(b page.Block, known map[string]string, blocks map[string][]page.Block) string {
	_, isFollowed := followed()[b.Page]
	switch b.Mark {
	case page.NotRun:
		if len(strings.Fields(b.Why)) < 3 {
			return "the reason is too short to be one"
		}
	case page.By:
		if known[b.Name] == "" {
			return "there is no test " + b.Name
		}
	case page.AsIn:
		if line := missing(b, blocks[b.Name]); line != "" {
			return "no block that runs as part of " + b.Name + " has the line " + line
		}
	case page.Run:
		return unmarked(b, isFollowed)
	default:
		if !isFollowed {
			return "the mark is for pages that a test follows: add the page to followed in test/docs/pages_test.go"
		}
	}
	return ""
}

// unmarked says what is missing of a block without a mark.
func unmarked(b page.Block, isFollowed bool) string {
	switch {
	case b.Language == "text" && looksLikeCommands.MatchString(b.Text):
		return "it has commands: take away its language, or mark it"
	case b.Language == "text", b.Commands() && (isFollowed || targets(b)):
		return ""
	case b.Language == "cel" && b.Page == "docs/howto/attestations.md":
		return "" // TestDocumentedExpressionsDoWhatTheySay
	case b.Language == "json" && strings.HasPrefix(b.Page, "docs/reference/commands/") && strings.HasPrefix(b.Text, "$ landwaiter "):
		return "" // TestTheExamplesOfJSONAreUpToDate
	case b.Language == "yaml" && strings.Contains(b.Text, "landwaiter.dev/") && slices.Contains(slices.Concat(withResources()...), b.Page):
		return "" // TestResourcesInDocumentsAreInForceOnAnyDay
	default:
		return "no test runs it: mark it as the package comment of test/kit/page says"
	}
}

// missing returns a line that no other block runs.
func missing(b page.Block, others []page.Block) string {
	all := "\n"
	for _, other := range others {
		if other.Commands() && slices.Contains([]page.Mark{page.Run, page.Fails, page.Repeat, page.StandIn}, other.Mark) {
			all += other.Text
		}
	}
	for line := range strings.Lines(b.Text) {
		if !strings.Contains(all, "\n"+line) {
			return line
		}
	}
	return ""
}

// targets says whether a block has nothing but targets of the Makefile, with variables that
// it has, and scripts that are there.
func targets(b page.Block) bool {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		return false
	}
	for line := range strings.Lines(b.Text) {
		line, _, _ = strings.Cut(line, "#")
		line = regexp.MustCompile(`='[^']*'`).ReplaceAllString(line, "=x")
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
		case len(words) == 1 && strings.HasPrefix(words[0], ".ci/"):
			if _, err := os.Stat(filepath.Join(root, words[0])); err != nil {
				return false
			}
		case words[0] == "make":
			for _, word := range words[1:] {
				name, _, variable := strings.Cut(word, "=")
				pattern := `(?m)^` + regexp.QuoteMeta(name) + `:.*## `
				if variable {
					pattern = `(?m)^` + regexp.QuoteMeta(name) + ` *\?=`
				}
				if !regexp.MustCompile(pattern).Match(makefile) {
					return false
				}
			}
		default:
			return false
		}
	}
	return true
}

func TestABlockThatNobodyHasIsFound(t *testing.T) {
	known := map[string]string{"TestThere": "text"}
	blocks := map[string][]page.Block{"docs/howto/install.md": {{Text: "kubectl get pods\n", Mark: page.Run}, {Text: "helm list\n", Mark: page.NotRun}}}
	for name, b := range map[string]page.Block{
		"commands on a page that no test follows": {Text: "kubectl get pods\n", Mark: page.Run},
		"a target that is not there":              {Text: "make nothing\n", Mark: page.Run},
		"a variable that is not there":            {Text: "make dev NOTHING=1\n", Mark: page.Run},
		"a test that is not there":                {Text: "x\n", Mark: page.By, Name: "TestNotThere"},
		"a line that another page does not run":   {Text: "helm list\n", Mark: page.AsIn, Name: "docs/howto/install.md"},
		"commands that are called a text":         {Text: "kubectl get pods\n", Language: "text", Mark: page.Run},
		"resources that no test reads":            {Text: "kind: Pod\n", Language: "yaml", Mark: page.Run},
		"output on a page that no test follows":   {Text: "x\n", Language: "text", Mark: page.Output},
		"a reason of one word":                    {Text: "x\n", Mark: page.NotRun, Why: "slow"},
	} {
		b.Page = "docs/other.md"
		require.NotEmpty(t, unaccounted(b, known, blocks), name)
	}
	for name, b := range map[string]page.Block{
		"targets":                    {Text: "make demo DEMO_ARGS=--once # see\n.ci/run\n", Mark: page.Run},
		"a line of another page":     {Text: "kubectl get pods\n", Mark: page.AsIn, Name: "docs/howto/install.md"},
		"a block that a test runs":   {Text: "x\n", Mark: page.By, Name: "TestThere"},
		"a block that cannot be run": {Text: "x\n", Mark: page.NotRun, Why: "there are no nodes"},
		"a message":                  {Text: "denied\n", Language: "text", Mark: page.Run},
	} {
		b.Page = "docs/other.md"
		require.Empty(t, unaccounted(b, known, blocks), name)
	}
}

// The newest versions that the install guide names are those that the tests build.
func TestTheVersionsInTheInstallGuideAreThoseThatAreTested(t *testing.T) {
	text := read(t, "docs/howto/install.md")
	for row, module := range map[string][2]string{
		"Kubernetes": {"test/tools/cluster/go.mod", "k8s.io/kubernetes"},
		"Gatekeeper": {"test/tools/cluster/go.mod", "github.com/open-policy-agent/gatekeeper/v3"},
		"cosign":     {"test/tools/go.mod", "github.com/sigstore/cosign/v3"},
	} {
		version := regexp.MustCompile(`^([0-9]+\.[0-9]+)\.`).FindStringSubmatch(pinned(t, module[0], module[1]))
		require.NotNil(t, version, module[1])
		require.Regexp(t, `(?m)^\| `+row+` \| [0-9.]+ \| `+regexp.QuoteMeta(version[1])+` \|$`, text)
	}
}

// The commands of docs/operate/redis.md are those that real servers are given.
func TestTheAccessRulesOfRedisAreThoseThatAreTested(t *testing.T) {
	text := read(t, "docs/operate/redis.md")
	for file, name := range map[string]string{"redis.go": "RedisCommands", "rediscluster.go": "ClusterCommands", "redissentinel.go": "SentinelRules"} {
		rules := regexp.MustCompile(`(?m)^const ` + name + ` = "(.+)"$`).FindStringSubmatch(read(t, "test/kit/cluster/"+file))
		require.NotNil(t, rules, name)
		require.Regexp(t, `(?m)^ACL SETUSER landwaiter .*`+regexp.QuoteMeta(rules[1])+`$`, text)
	}
}

// A namespace of the Pod Security level restricted rejects a plain pod before Gatekeeper sees its image, so the reader
// would see another error than the page says.
func TestThePodsOfThePagesFitEveryPodSecurityLevel(t *testing.T) {
	for _, name := range pages(t) {
		read, err := page.Read(root, name)
		require.NoError(t, err)
		text := ""
		for _, b := range read {
			text += b.Text
		}
		if strings.Contains(text, "labels: {pod-security.kubernetes.io/enforce: baseline}") {
			continue // it makes the namespace
		}
		for _, command := range regexp.MustCompile(`(?m)^.*\bkubectl run (?:.*\\\n)*.*$`).FindAllString(text, -1) {
			require.Contains(t, command, `--override-type=json --overrides="$(cat config/restricted-pod.json)"`, name)
		}
	}
}
