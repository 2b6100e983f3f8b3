package example

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/landwaiter/landwaiter/test/kit/fixture"
)

//go:embed resources/*.yaml
var resources embed.FS

// writeResources writes the directory that `landwaiter-server serve` would be given.
func writeResources(dir string, registry *fixture.Registry, by signers) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write resources: %w", err)
	}
	signer := by.teamB.Chain[0].Subject
	values := map[string]string{
		"REGISTRY":    registry.Host(),
		"REGISTRY_CA": block(registry.CertificatePEM()),
		"CLUSTER_KEY": block(by.cluster.PEM),
		"TEAM_A_KEY":  block(by.teamA.PEM),
		"TEAM_B_CA":   block(by.teamBRoot.CertificatePEM),
		"TEAM_B_IDENTITY": fmt.Sprintf("x509.subject: C=%s, ST=%s, O=%s, CN=%s",
			signer.Country[0], signer.Province[0], signer.Organization[0], signer.CommonName),
	}
	files, err := resources.ReadDir("resources")
	if err != nil {
		return fmt.Errorf("read the embedded resources: %w", err)
	}
	for _, file := range files {
		text, err := resources.ReadFile("resources/" + file.Name())
		if err != nil {
			return fmt.Errorf("read the embedded resources: %w", err)
		}
		expanded := os.Expand(string(text), func(name string) string { return values[name] })
		if err := os.WriteFile(filepath.Join(dir, file.Name()), []byte(expanded), 0o600); err != nil {
			return fmt.Errorf("write resources: %w", err)
		}
	}
	return nil
}

// block returns text as a YAML block scalar, indented deeper than any of its keys.
func block(text []byte) string {
	const indent = "\n        "
	return "|" + indent + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", indent)
}
