package v1beta1

import "time"

// Duration is a length of time of more than 0 as Go writes it, with the units h, m and s: 168h,
// 1m30s. It is text, because an API server accepts durations that Go does not read, and one object that
// cannot be read would hold up the watch of all.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,9})?(h|m|s))+$`
// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s')",message="it must be more than 0, such as 168h"
type Duration string

// Parse returns the duration, and an error for text that is none.
func (d Duration) Parse() (time.Duration, error) {
	return time.ParseDuration(string(d))
}
