package program

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// ParseAccount parses the NAMESPACE/NAME of --landwaiter-account.
func ParseAccount(text string) (types.NamespacedName, error) {
	namespace, name, _ := strings.Cut(text, "/")
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return types.NamespacedName{}, fmt.Errorf("--landwaiter-account is %q, it must be NAMESPACE/NAME", text)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}, nil
}
