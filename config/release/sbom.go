package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// sbomType is the media type of an SBOM: CycloneDX, JSON.
const sbomType = "application/vnd.cyclonedx+json"

// rootsModule is the module that publicRoots comes from. An image has its content, but
// the binary does not have its code.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// describe returns the SBOM of a binary: the modules in it, with their checksums of
// go.sum, and more modules that come with it.
func describe(built binary, o origin, more ...*debug.Module) ([]byte, error) {
	info, sum := built.info, sha256.Sum256(built.content)
	subject := module(info.Main.Path, o.version)
	subject.Type, subject.Name, subject.Description = cyclonedx.ComponentTypeApplication, built.program, about
	subject.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}}
	subject.Licenses = &cyclonedx.Licenses{{License: &cyclonedx.License{ID: license}}}
	properties := []cyclonedx.Property{}
	for _, setting := range info.Settings {
		properties = append(properties, cyclonedx.Property{Name: "go:build:" + setting.Key, Value: setting.Value})
	}
	subject.Properties = &properties

	components := []cyclonedx.Component{module("std", strings.TrimPrefix(info.GoVersion, "go"))}
	more = slices.DeleteFunc(slices.Clone(more), func(m *debug.Module) bool {
		return slices.ContainsFunc(info.Deps, func(d *debug.Module) bool { return d.Path == m.Path })
	})
	for _, dependency := range slices.Concat(info.Deps, more) {
		if dependency.Replace != nil {
			dependency = dependency.Replace
		}
		component := module(dependency.Path, dependency.Version)
		hash, err := moduleHash(dependency.Sum)
		if err != nil {
			return nil, fmt.Errorf("checksum of %s: %w", dependency.Path, err)
		}
		component.Hashes = hash
		components = append(components, component)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: o.created.Format(time.RFC3339), Component: &subject}
	bom.Components = &components
	var out bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).
		EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
		return nil, fmt.Errorf("encode an SBOM: %w", err)
	}
	return out.Bytes(), nil
}

// module describes a module. Its package URL is in lower case, with an encoded version
// (purl-spec, type "golang").
func module(path, version string) cyclonedx.Component {
	url := "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")
	return cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: url}
}

// moduleHash returns a checksum as go.sum has it ("h1:" and base64) in hex. It is the
// SHA-256 of the module's list of files with their sums.
func moduleHash(sum string) (*[]cyclonedx.Hash, error) {
	if sum == "" {
		return nil, nil
	}
	encoded, known := strings.CutPrefix(sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !known || err != nil || len(raw) != sha256.Size {
		return nil, fmt.Errorf("%q is no h1 checksum", sum)
	}
	return &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(raw)}}, nil
}
