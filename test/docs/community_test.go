package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/landwaiter/landwaiter/api/v1beta1"
)

// What a forge and its scanners read names files and targets that exist, so that none of it goes stale unnoticed.
func TestWhatTheForgeReadsNamesFilesAndTargetsThatAreThere(t *testing.T) {
	var names []string
	for _, pattern := range []string{"SECURITY-INSIGHTS.yml", "CODE_OF_CONDUCT.md", "GOVERNANCE.md", "MAINTAINERS.md", "ROADMAP.md", ".github/*/*",
		".github/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		names = append(names, found...)
	}
	file, target := regexp.MustCompile(`landwaiter/landwaiter/(?:blob|tree)/main/([A-Za-z0-9_./-]+)`),
		regexp.MustCompile("(?m)(?:`|run: .*)make ([a-z][a-z0-9 ]*)")
	makefile, insights := read(t, "Makefile"), false
	for _, name := range names {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		for _, found := range file.FindAllStringSubmatch(string(text), -1) {
			_, err := os.Stat(filepath.Join(root, found[1]))
			require.NoError(t, err, name)
		}
		for _, found := range target.FindAllStringSubmatch(string(text), -1) {
			for _, one := range regexp.MustCompile(`[a-z0-9]+`).FindAllString(found[1], -1) {
				require.Regexp(t, `(?m)^`+one+`:`, makefile, "%s: make %s", name, found[1])
			}
		}
		if extension := filepath.Ext(name); extension == ".yaml" || extension == ".yml" {
			var document map[string]any
			require.NoError(t, yaml.UnmarshalStrict(text, &document), name)
			require.NotEmpty(t, document, name)
			insights = insights || document["header"] != nil
		}
	}
	require.True(t, insights)
}

// Artifact Hub lists the kinds of a chart from an annotation, in a text that Helm does not read.
func TestTheChartListsEveryKindForArtifactHub(t *testing.T) {
	var chart struct{ Annotations map[string]string }
	require.NoError(t, yaml.Unmarshal([]byte(read(t, "charts/landwaiter/Chart.yaml")), &chart))
	var listed []struct{ Kind, Version, Name, DisplayName, Description string }
	require.NoError(t, yaml.UnmarshalStrict([]byte(chart.Annotations["artifacthub.io/crds"]), &listed))
	kinds := v1beta1.Kinds()
	require.Len(t, listed, len(kinds))
	names := map[string]string{}
	for _, kind := range kinds {
		names[kind.Name] = kind.Plural + "." + v1beta1.GroupVersion.Group
	}
	for _, entry := range listed {
		require.Equal(t, names[entry.Kind], entry.Name)
		require.Equal(t, v1beta1.GroupVersion.Version, entry.Version)
		require.NotEmpty(t, entry.Description, entry.Kind)
		delete(names, entry.Kind)
	}
	require.Empty(t, names)
}
