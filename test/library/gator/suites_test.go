// Package gator runs the suites of the library with Gatekeeper's own runner, as users do with
// `gator verify ./library/...`. test/library takes the same suites apart.
package gator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"testing"

	"github.com/open-policy-agent/frameworks/constraint/pkg/client"
	"github.com/open-policy-agent/frameworks/constraint/pkg/core/templates"
	"github.com/open-policy-agent/frameworks/constraint/pkg/types"
	"github.com/open-policy-agent/gatekeeper/v3/apis"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/reader"
	"github.com/open-policy-agent/gatekeeper/v3/pkg/gator/verify"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

const library = "../../../library"

// compiled is a client that compiles a template once. The runner wants a new client for each
// case, which would compile it again: what cases differ in is taken back between them.
type compiled struct {
	*client.Client
	template   *templates.ConstraintTemplate
	constraint *unstructured.Unstructured
	data       []any
}

// renew makes the client as good as new, but for the template.
func (c *compiled) renew(ctx context.Context) error {
	var problems []error
	for _, data := range c.data {
		_, err := c.RemoveData(ctx, data)
		problems = append(problems, err)
	}
	if c.constraint != nil {
		_, err := c.RemoveConstraint(ctx, c.constraint)
		problems = append(problems, err)
	}
	c.data, c.constraint = nil, nil
	return errors.Join(problems...)
}

func (c *compiled) AddTemplate(ctx context.Context, template *templates.ConstraintTemplate) (*types.Responses, error) {
	if reflect.DeepEqual(c.template, template) {
		return &types.Responses{}, nil
	}
	if c.template != nil {
		return nil, errors.New("a suite has one template")
	}
	c.template = template
	return c.Client.AddTemplate(ctx, template)
}

func (c *compiled) AddConstraint(ctx context.Context, constraint *unstructured.Unstructured) (*types.Responses, error) {
	responses, err := c.Client.AddConstraint(ctx, constraint)
	if err == nil {
		c.constraint = constraint
	}
	return responses, err
}

func (c *compiled) AddData(ctx context.Context, data any) (*types.Responses, error) {
	c.data = append(c.data, data)
	return c.Client.AddData(ctx, data)
}

// clients returns what makes the clients of one suite.
func clients(ctx context.Context) func(...gator.Opt) (gator.Client, error) {
	var shared *compiled
	return func(...gator.Opt) (gator.Client, error) {
		if shared != nil {
			return shared, shared.renew(ctx)
		}
		fresh, err := gator.NewOPAClient(false)
		if err != nil {
			return nil, err
		}
		whole, ok := fresh.(*client.Client)
		if !ok {
			return nil, errors.New("gator's client is of another type")
		}
		shared = &compiled{Client: whole}
		return shared, nil
	}
}

func TestEverySuitePasses(t *testing.T) {
	files := os.DirFS(library)
	for _, name := range find(t, "*/suite.yaml") {
		folder := filepath.Base(filepath.Dir(name))
		t.Run(folder, func(t *testing.T) {
			t.Parallel()
			suites, err := verify.ReadSuites(files, folder+"/suite.yaml", folder+"/suite.yaml", false)
			require.NoError(t, err)
			require.Len(t, suites, 1)
			runner, err := verify.NewRunner(files, clients(t.Context()))
			require.NoError(t, err)
			all, err := verify.NewFilter("")
			require.NoError(t, err)
			result := runner.Run(t.Context(), all, suites[0])
			require.NoError(t, result.Error)
			require.False(t, result.Skipped)
			for _, test := range result.TestResults {
				require.NoError(t, test.Error, test.Name)
				require.False(t, test.Skipped, test.Name)
				for _, c := range test.CaseResults {
					require.NoError(t, c.Error, "%s: %s", test.Name, c.Name)
					require.False(t, c.Skipped, "%s: %s", test.Name, c.Name)
				}
			}
		})
	}
}

// blocks are the objects on a page. Other blocks are parts of objects.
var blocks = regexp.MustCompile("(?s)\n```yaml\n(apiVersion:.*?)\n```\n")

// Samples, sets and the examples of pages fit the schemas of their templates. A template that
// asks a provider does not compile here; its constraints are applied by the tests with a real
// Gatekeeper.
func TestEveryConstraintIsValid(t *testing.T) {
	files := os.DirFS(library)
	compiling, err := gator.NewOPAClient(false)
	require.NoError(t, err)
	scheme := runtime.NewScheme()
	require.NoError(t, apis.AddToScheme(scheme))
	without := map[string]bool{}
	for _, name := range find(t, "*/template.yaml") {
		template, err := reader.ReadTemplate(scheme, files, name)
		require.NoError(t, err, name)
		_, err = compiling.AddTemplate(t.Context(), template)
		if err != nil {
			require.ErrorContains(t, err, "external_data", name)
			without[template.Spec.CRD.Spec.Names.Kind] = true
		}
	}
	texts := map[string]string{}
	for _, pattern := range []string{"*/samples/constraint*.yaml", "constraints/*/*.yaml", "*/README.md"} {
		for _, name := range find(t, pattern) {
			text, err := os.ReadFile(filepath.Join(library, name))
			require.NoError(t, err)
			if filepath.Ext(name) == ".yaml" {
				texts[name] = string(text)
			}
			for i, block := range blocks.FindAllStringSubmatch(string(text), -1) {
				texts[fmt.Sprintf("%s, block %d", name, i)] = block[1]
			}
		}
	}
	checked := 0
	for name, text := range texts {
		objects, err := reader.ReadUnstructureds([]byte(text))
		require.NoError(t, err, name)
		for _, object := range objects {
			if object.GroupVersionKind().Group != "constraints.gatekeeper.sh" || without[object.GetKind()] {
				continue
			}
			_, err := compiling.AddConstraint(t.Context(), object)
			require.NoError(t, err, name)
			checked++
		}
	}
	require.Greater(t, checked, 20)
}

// find returns the files of the library that a pattern matches.
func find(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := fs.Glob(os.DirFS(library), pattern)
	require.NoError(t, err)
	require.NotEmpty(t, found)
	return found
}
