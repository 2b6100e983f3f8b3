package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/require"
)

func decodeSBOM(t *testing.T, text []byte) *cyclonedx.BOM {
	t.Helper()
	bom := new(cyclonedx.BOM)
	require.NoError(t, cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(bom))
	return bom
}

func TestSBOMNamesEveryModuleOfTheBinary(t *testing.T) {
	sum := sha256.Sum256([]byte("module"))
	h1 := "h1:" + base64.StdEncoding.EncodeToString(sum[:])
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "github.com/landwaiter/landwaiter", Version: "(devel)"},
		Deps: []*debug.Module{{Path: "example.com/A", Version: "v1.2.3+incompatible", Sum: h1},
			{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v1.0.1", Sum: h1}}},
		Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "arm64"}}}
	text, err := describe(binary{content: []byte("binary"), info: info}, origin{version: "v0.1.0", created: noon},
		&debug.Module{Path: rootsModule, Version: "v0.0.1"}, &debug.Module{Path: "example.com/A", Version: "v9.0.0"})
	require.NoError(t, err)
	bom := decodeSBOM(t, text)
	require.Equal(t, cyclonedx.SpecVersion1_6, bom.SpecVersion)
	require.Equal(t, "2026-03-01T12:00:00Z", bom.Metadata.Timestamp)
	subject := bom.Metadata.Component
	require.Equal(t, "pkg:golang/github.com/landwaiter/landwaiter@v0.1.0", subject.PackageURL)
	binarySum := sha256.Sum256([]byte("binary"))
	require.Equal(t, hex.EncodeToString(binarySum[:]), (*subject.Hashes)[0].Value)
	require.Equal(t, []cyclonedx.Property{{Name: "go:build:GOARCH", Value: "arm64"}}, *subject.Properties)
	var found []string
	for _, component := range *bom.Components {
		found = append(found, component.PackageURL)
	}
	require.Equal(t, []string{"pkg:golang/std@1.26.8", "pkg:golang/example.com/a@v1.2.3%2Bincompatible", "pkg:golang/example.com/fork@v1.0.1",
		"pkg:golang/" + rootsModule + "@v0.0.1"}, found)
	require.Equal(t, hex.EncodeToString(sum[:]), (*(*bom.Components)[1].Hashes)[0].Value)
}

// buildProgram builds a small Go program.
func buildProgram(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/program\n\ngo 1.26\n", "main.go": "package main\n\nfunc main() {}\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	command := exec.CommandContext(t.Context(), "go", "build", "-o", "program", ".")
	command.Dir, command.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	content, err := os.ReadFile(filepath.Join(dir, "program"))
	require.NoError(t, err)
	return content
}

func TestReadsTheModulesOfABinary(t *testing.T) {
	built, err := readBinary("program", buildProgram(t))
	require.NoError(t, err)
	text, err := describe(built, origin{version: "v0.1.0", created: noon})
	require.NoError(t, err)
	require.Equal(t, "pkg:golang/example.com/program@v0.1.0", decodeSBOM(t, text).Metadata.Component.PackageURL)
	again, err := describe(built, origin{version: "v0.1.0", created: noon})
	require.NoError(t, err)
	require.Equal(t, text, again)
}

func TestRefusesWhatIsNoGoProgram(t *testing.T) {
	_, err := readBinary("program", []byte("#!/bin/sh\n"))
	require.Error(t, err)
}

func TestRefusesChecksumsOfAnotherKind(t *testing.T) {
	for _, sum := range []string{"h2:AAAA", "h1:AAAA", "h1:!", "AAAA"} {
		_, err := moduleHash(sum)
		require.Error(t, err, sum)
	}
	none, err := moduleHash("")
	require.NoError(t, err)
	require.Nil(t, none)
}
