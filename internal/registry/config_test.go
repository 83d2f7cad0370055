package registry

// testConfig has few origins.
func testConfig() Config {
	config := DefaultConfig()
	config.MaxOrigins = 8
	return config
}
