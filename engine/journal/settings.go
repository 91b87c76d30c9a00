package journal

// The settings of a store. Only package journal changes them.
const (
	// SettingKey holds the ids of the keys with which engines have sealed data of this store.
	// The newest key comes first: engines seal with it. Commas separate the ids. If there is
	// more than one id, the store may still contain data of the older keys.
	SettingKey = "key"
	// SettingKeySince holds the id of the newest key, and the highest number of an engine that
	// was a member of the store when that key became the newest one.
	SettingKeySince = "key_since"
	// SettingHistory holds the first run whose journal rows must all be tagged (decision
	// 0020). The value is sealed.
	SettingHistory = "history"
)
