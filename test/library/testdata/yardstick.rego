package verifiedimages

prefix := sprintf("[%s]", [input.review.namespace])

keys := {concat("", [prefix, container.image]) |
	some field in ["containers", "initContainers", "ephemeralContainers"]
	some container in input.review.object.spec[field]
}

response := external_data({"provider": input.parameters.provider, "keys": [key | some key in keys]})

passed := {pair[0] |
	response.system_error == ""
	some pair in response.responses
	pair[1].isSuccess == true
}

violation contains {"msg": sprintf("image %s is denied: %v", [key, "no signature"])} if {
	some key in keys - passed
}
