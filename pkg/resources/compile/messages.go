package compile

import (
	"fmt"
	"strings"

	"github.com/landwaiter/landwaiter/pkg/decide/policy"
)

// fieldError wraps err with the name of the field; nil stays nil.
func fieldError(field string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", field, err)
	}
	return nil
}

// Unusable says that a resource cannot be used, to everyone it applies to. Only the
// status of a cluster resource says why it is broken: that may name objects of other
// namespaces. What is hidden stays so.
func Unusable(source policy.ObjectRef, err error) error {
	err = faultsOf(err)[0]
	if source.Namespace == "" && !policy.IsHidden(err) {
		return Refusal(source.String() + " cannot be used; its condition Ready says why")
	}
	return RefusalOf(fmt.Errorf("%s cannot be used: %w", source, err))
}

// Cut shortens a message to [maxMessage]: a tenant chooses parts of it, and the API server
// refuses a condition that is too long.
func Cut(message string) string { return policy.Cut(message, maxMessage) }

// JoinNames joins the first names of a list: at most [maxNames], and as many as fit in
// half a message.
func JoinNames(list []string) string {
	shown, size := 0, 0
	for shown < min(len(list), maxNames) && size+len(list[shown]) <= maxMessage/2 {
		size += len(list[shown])
		shown++
	}
	if shown == len(list) {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:shown], ", "), len(list)-shown)
}
