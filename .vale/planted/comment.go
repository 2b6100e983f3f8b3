package planted

// read is for whoever may not read the Secret.
func read() string {
	return "short"
}
