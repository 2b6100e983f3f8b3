// Package crd carries the CustomResourceDefinitions of landwaiter.dev, which lie beside
// it, so that programs validate resources as an API server does. It does not read them.
package crd

import "embed"

// Files has the CRDs, one YAML file each. It is read-only.
//
//go:embed landwaiter.dev_*.yaml
var Files embed.FS
