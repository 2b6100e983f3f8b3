package v1beta1

import "time"

// Duration is a Go duration greater than 0 with the units h, m and s, such as 168h or 1m30s. It
// is a string because API servers accept durations that Go cannot parse. One object that cannot
// be decoded would block the watch of all objects.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,9})?(h|m|s))+$`
// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="it must be more than 0, such as 168h"
type Duration string

// Parse returns the duration, or an error if the text is not a duration.
func (d Duration) Parse() (time.Duration, error) {
	return time.ParseDuration(string(d))
}
