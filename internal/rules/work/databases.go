package work

// databaseType is the type of work of a call to a database, whose system has OpenTelemetry's
// present or older name.
func databaseType(system string) string {
	switch system {
	case "actian.ingres", "adabas", "aws.redshift", "cache", "clickhouse", "cloudscape", "cockroachdb",
		"coldfusion", "db2", "derby", "edb", "filemaker", "firebird", "firebirdsql", "firstsql", "h2",
		"h2database", "hanadb", "hsqldb", "ibm.db2", "ibm.informix", "ibm.netezza", "informix", "ingres",
		"instantdb", "interbase", "intersystems.cache", "mariadb", "maxdb", "microsoft.sql_server", "mssql",
		"mysql", "netezza", "oracle", "oracle.db", "other_sql", "pervasive", "pointbase", "postgresql",
		"progress", "redshift", "sap.hana", "sap.maxdb", "softwareag.adabas", "sqlite", "sybase", "teradata",
		"vertica":
		return "sql"
	case "cassandra", "redis", "memcached", "mongodb", "elasticsearch", "opensearch":
		return system
	}
	return "db"
}
