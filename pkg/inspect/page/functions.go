package page

import "html/template"

// functions are the functions of templates.
func functions() template.FuncMap {
	return template.FuncMap{
		"class": classOf,
		"add":   func(a, b int) int { return a + b },
		"mid":   func(a, b int) int { return a + b/2 },
	}
}
