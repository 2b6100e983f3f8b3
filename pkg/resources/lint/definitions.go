package lint

import (
	"context"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/resources/configdir"
	"github.com/landwaiter/landwaiter/pkg/resources/schema"
)

// Definitions returns what an API server would refuse of declarations by the CRDs
// of the resources, without compiling them.
func Definitions(ctx context.Context, declarations []configdir.Declaration) ([]Finding, error) {
	schemas := schema.New()
	c := checker{wrong: map[policy.ObjectRef]bool{}}
	for _, d := range declarations {
		if d.Ignored {
			continue
		}
		found, err := validated(ctx, schemas, d)
		if err != nil {
			return nil, err
		}
		for _, f := range found {
			c.add(d, f)
		}
	}
	return c.report.Findings, nil
}
