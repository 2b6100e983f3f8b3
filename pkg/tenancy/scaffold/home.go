package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/landwaiter/landwaiter/pkg/tenancy/onboard"
)

// HomeNamespaceError says that a Tenant of a tree would get another home namespace, which no cluster accepts.
// Nothing was written.
type HomeNamespaceError struct{ File, Tenant, Before, After string }

// Error says what to do.
func (e *HomeNamespaceError) Error() string {
	return fmt.Sprintf("%s: the home namespace of Tenant %s is %s, and cannot be changed to %s: set spec.homeNamespace back, or remove the team and add it with another name",
		e.File, e.Tenant, e.Before, e.After)
}

// KeepsHomeNamespace returns a [HomeNamespaceError] if the files that an earlier run wrote in dir, and that tree
// has too, are of another home namespace.
func (team Team) KeepsHomeNamespace(dir string, tree Tree) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open the tree: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing was written
	for _, file := range tree.Files {
		text, err := readExisting(root, file.Path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		documents, err := parse([]byte(text))
		if err != nil {
			continue // writing names it
		}
		for _, document := range documents {
			// The home namespace alone has this binding.
			metadata := field(document, "metadata")
			if textOf(document, "kind") != "RoleBinding" || metadata == nil || textOf(metadata, "name") != onboard.RoleReferenceReader {
				continue
			}
			if before := textOf(metadata, "namespace"); before != team.Tenant.Spec.HomeNamespace {
				return &HomeNamespaceError{File: file.Path, Tenant: team.Tenant.Name, Before: before, After: team.Tenant.Spec.HomeNamespace}
			}
		}
	}
	return nil
}
