package compile

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/landwaiter/landwaiter/api/v1beta1"
	"github.com/landwaiter/landwaiter/pkg/decide/policy"
	"github.com/landwaiter/landwaiter/pkg/decide/verify"
	"github.com/landwaiter/landwaiter/pkg/resources/resource"
)

// NewBreakGlass compiles break-glass of a namespace, which may last most.
func NewBreakGlass(source policy.ObjectRef, annotations map[string]string, most time.Duration) (*verify.Exception, error) {
	if most <= 0 {
		return nil, errors.New("serve runs without --break-glass; ask a cluster admin")
	}
	from, err := moment(annotations, v1beta1.AnnotationBreakGlassFrom)
	if err != nil {
		return nil, err
	}
	until, err := moment(annotations, v1beta1.AnnotationBreakGlassUntil)
	if err != nil {
		return nil, err
	}
	reason := strings.TrimSpace(annotations[v1beta1.AnnotationBreakGlassReason])
	mandatory := annotations[v1beta1.AnnotationBreakGlassOverrideMandatory]
	switch {
	case reason == "":
		return nil, fmt.Errorf("annotation %s is missing; say why", v1beta1.AnnotationBreakGlassReason)
	case mandatory != "" && mandatory != "true" && mandatory != "false":
		return nil, fmt.Errorf("annotation %s is %.40q, it must be true or false", v1beta1.AnnotationBreakGlassOverrideMandatory, mandatory)
	case !from.Before(until):
		return nil, fmt.Errorf("it ends at %s, before it begins at %s", until.UTC().Format(time.RFC3339), from.UTC().Format(time.RFC3339))
	case until.Sub(from) > most:
		return nil, resource.Reasoned(policy.ReasonTooLong, fmt.Errorf("it lasts %s, and --max-break-glass is %s; let it end earlier", until.Sub(from), most))
	}
	made := verify.ByCluster(verify.Exception{Source: source, Why: policy.Cut(reason, maxExceptionReason), From: from, Until: until, OverrideMandatory: mandatory == "true"})
	return &made, nil
}

func moment(annotations map[string]string, key string) (time.Time, error) {
	text, ok := annotations[key]
	if !ok {
		return time.Time{}, fmt.Errorf("annotation %s is missing; write a time such as 2026-12-31T18:00:00Z", key)
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("annotation %s is %.40q, it must be a time such as 2026-12-31T18:00:00Z", key, text)
	}
	return at, nil
}
