package v1beta1

// Contact says whom to ask, in one line of printable characters: an e-mail address, a chat
// channel or the address of a page.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[\\\\p{L}\\\\p{M}\\\\p{N}\\\\p{P}\\\\p{S} ]*$')",message="spec.contact must be one line of printable characters"
type Contact string
