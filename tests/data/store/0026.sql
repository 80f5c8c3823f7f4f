BEGIN TRANSACTION;
CREATE TABLE applications (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id CHAR(32) NOT NULL, 
	vm CHAR(32) NOT NULL, 
	host TEXT NOT NULL, 
	profile TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	wanted JSON NOT NULL, 
	state TEXT NOT NULL, 
	best_effort BOOLEAN NOT NULL, 
	journal JSON NOT NULL, 
	outcomes JSON NOT NULL, 
	problems JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	CONSTRAINT uq_applications_id UNIQUE (id)
);
INSERT INTO "applications" VALUES(1,'76c933fe69d54a42a41e5b3b9f6bc524','0000000000004000800000000000000a','a','tuned',1,'{"multifd":true}','applied',0,'[{"tunable":"multifd","value":false,"owner":""}]','[{"tunable":"multifd","status":"overwritten","wanted":true,"seen":false,"reason":"overwritten by libvirt","owner":""}]','[{"field":"multifd","code":"command_refused","message":"QEMU refused","remedy":"try again"}]','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000');
INSERT INTO "applications" VALUES(2,'d471a1a3f6ec46548413825bc9ba6b2c','0000000000004000800000000000000a','a','tuned',1,'{"multifd":true}','failed',0,'[{"tunable":"multifd","value":false,"owner":""}]','[{"tunable":"multifd","status":"overwritten","wanted":true,"seen":false,"reason":"overwritten by libvirt","owner":""}]','[{"field":"multifd","code":"command_refused","message":"QEMU refused","remedy":"try again"}]','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000');
CREATE TABLE assignments (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	target TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	profile TEXT NOT NULL, 
	created_at DATETIME NOT NULL, intent JSON, 
	CONSTRAINT fk_assignments_profile FOREIGN KEY(profile) REFERENCES profiles (name), 
	CONSTRAINT uq_assignments_target_key UNIQUE (target, "key")
);
INSERT INTO "assignments" VALUES(1,'selector','tier=db','tuned','2026-11-21 04:30:00.000000',NULL);
INSERT INTO "assignments" VALUES(2,'default','','tuned','2026-11-21 04:30:00.000000','{"max_silence_ms":500,"deadline_s":60,"max_slowdown_percent":null,"max_bandwidth_bytes_per_s":null,"may":["compress","zero_copy"],"otherwise":"refuse","relax":[]}');
CREATE TABLE audit (
	number INTEGER NOT NULL, 
	at DATETIME NOT NULL, 
	actor_kind TEXT NOT NULL, 
	actor TEXT NOT NULL, 
	actor_name TEXT NOT NULL, 
	origin TEXT NOT NULL, 
	action TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	status INTEGER, 
	reason TEXT NOT NULL, 
	request TEXT NOT NULL, 
	codes JSON NOT NULL, 
	changes JSON NOT NULL, 
	hash TEXT NOT NULL, 
	CONSTRAINT pk_audit PRIMARY KEY (number)
);
INSERT INTO "audit" VALUES(3,'2026-11-21 04:30:00.000000','service','','vmtune','','keep_house','audit 1 to 2','changed',NULL,'','','[]','[{"what":"audit","key":"1 to 2","before":{"newest":"17fca7e59108dfaa0a0922d8de368c78c127211e59527d5e836065ad997ecd0d"},"after":null}]','8c993e35622b63c2a50e26f96b2c0e51e24c2fcad48d4a7b0f8c3f80a0f4fea1');
INSERT INTO "audit" VALUES(4,'2026-11-21 04:30:00.000000','service','','vmtune','','','labels 00000000-0000-4000-8000-00000000000a','changed',NULL,'','','[]','[{"what":"labels","key":"00000000-0000-4000-8000-00000000000a","before":{"labels":{}},"after":{"labels":{"tier":"db","zone":"1"}}}]','25def96c0f7df67490739fc7d2e3d8bf06c1f5a2b3bfaa48c5ff17f9250ee68d');
INSERT INTO "audit" VALUES(5,'2026-11-21 04:30:00.000000','service','','vmtune','','','profile tuned','changed',NULL,'','','[]','[{"what":"profile","key":"tuned","before":null,"after":{"description":"with multifd","current":1,"deleted_at":null}},{"what":"revision","key":"tuned 1","before":null,"after":{"values":{"multifd":true},"steps":[],"note":"first"}}]','24f153ac308cc370f958637ec9d683c58ed7686b08e5111cb7a10e413ed17389');
INSERT INTO "audit" VALUES(6,'2026-11-21 04:30:00.000000','service','','vmtune','','','profile tuned','changed',NULL,'','','[]','[{"what":"profile","key":"tuned","before":{"current":1},"after":{"current":2}},{"what":"revision","key":"tuned 2","before":null,"after":{"values":{"multifd":true,"multifd_channels":8},"steps":[{"when":{"after_s":300},"then":{"do":"abort"}}],"note":"more"}}]','395ba294ff6221b45a5c288534e4d8e40b5e4f8503ba51be5636aab84d461fd3');
INSERT INTO "audit" VALUES(7,'2026-11-21 04:30:00.000000','service','','vmtune','','','profile gone','changed',NULL,'','','[]','[{"what":"profile","key":"gone","before":null,"after":{"description":"","current":1,"deleted_at":null}},{"what":"revision","key":"gone 1","before":null,"after":{"values":{"tls":"word"},"steps":[],"note":"kept"}}]','14bfc3e425e7b5d60e340557cfb03ef6101768e43ad4ce3fe368ca28a50f5a74');
INSERT INTO "audit" VALUES(8,'2026-11-21 04:30:00.000000','service','','vmtune','','','profile gone','changed',NULL,'','','[]','[{"what":"profile","key":"gone","before":{"deleted_at":null},"after":{"deleted_at":"2026-11-21T04:30:00+00:00"}}]','87a5a6dd80d2796c0dd0f99fe8f553da9b1ab1992e211b3d4f6565a7e6d44fc6');
INSERT INTO "audit" VALUES(9,'2026-11-21 04:30:00.000000','service','','vmtune','','','assignment 1','changed',NULL,'','','[]','[{"what":"assignment","key":"1","before":null,"after":{"target":"selector","key":"tier=db","profile":"tuned"}}]','4c08e2937c671e45029a286a230625181b0c32dc8908168adf1396f134936790');
INSERT INTO "audit" VALUES(10,'2026-11-21 04:30:00.000000','service','','vmtune','','','assignment 2','changed',NULL,'','','[]','[{"what":"assignment","key":"2","before":null,"after":{"target":"default","key":"","profile":"tuned"}}]','3187c6674d47fa56627be7891e6cb41018ae8d98c93272882e4cb0fcbaa91399');
INSERT INTO "audit" VALUES(11,'2026-11-21 04:30:00.000000','service','','vmtune','','','application 76c933fe-69d5-4a42-a41e-5b3b9f6bc524','changed',NULL,'','','[]','[{"what":"application","key":"76c933fe-69d5-4a42-a41e-5b3b9f6bc524","before":null,"after":{"vm":"00000000-0000-4000-8000-00000000000a","host":"a","profile":"tuned","revision":1,"wanted":{"multifd":true},"journal":[{"tunable":"multifd","value":false,"owner":""}],"best_effort":false,"state":"intended"}}]','a9c177c18449c15a868bc28543878486541e39db4ced7187af6211f446c9eb4e');
INSERT INTO "audit" VALUES(12,'2026-11-21 04:30:00.000000','service','','vmtune','','','application 76c933fe-69d5-4a42-a41e-5b3b9f6bc524','changed',NULL,'','','[]','[{"what":"application","key":"76c933fe-69d5-4a42-a41e-5b3b9f6bc524","before":{"state":"intended"},"after":{"state":"applied"}}]','7ac6449b578b29cf2b64ccd8b1d895acd86fbb00c6be99750d59f02da9cbbbeb');
INSERT INTO "audit" VALUES(13,'2026-11-21 04:30:00.000000','service','','vmtune','','','application d471a1a3-f6ec-4654-8413-825bc9ba6b2c','changed',NULL,'','','[]','[{"what":"application","key":"d471a1a3-f6ec-4654-8413-825bc9ba6b2c","before":null,"after":{"vm":"00000000-0000-4000-8000-00000000000a","host":"a","profile":"tuned","revision":1,"wanted":{"multifd":true},"journal":[{"tunable":"multifd","value":false,"owner":""}],"best_effort":false,"state":"intended"}}]','509d3f7e3bfe5a3046f96514fa4b50631feeb6ceb765452ff00d6a4e501f113a');
INSERT INTO "audit" VALUES(14,'2026-11-21 04:30:00.000000','service','','vmtune','','','application d471a1a3-f6ec-4654-8413-825bc9ba6b2c','changed',NULL,'','','[]','[{"what":"application","key":"d471a1a3-f6ec-4654-8413-825bc9ba6b2c","before":{"state":"intended"},"after":{"state":"failed"}}]','5d9da093db0109b3aa7bfafaeff930b2aceb7bb38fa87e2fc027f201fc141922');
INSERT INTO "audit" VALUES(15,'2026-11-21 04:30:00.000000','service','','vmtune','','','migration 72b24f65-3b14-48c9-adde-3af6e19d2041','changed',NULL,'','','[]','[{"what":"migration","key":"72b24f65-3b14-48c9-adde-3af6e19d2041","before":null,"after":{"vm":"00000000-0000-4000-8000-00000000000a","source":"a","destination":"b","trigger":"vmtune","profile":"tuned","revision":2,"wanted":{"multifd":true},"steps":[{"when":{"after_s":300},"then":{"do":"abort"}}],"overrides":["optmem_low"],"abort":"none"}}]','64d3da29d047eea046c4ee251561679bc88204acbd01e08a0349fca13013a35c');
INSERT INTO "audit" VALUES(16,'2026-11-21 04:30:00.000000','service','','vmtune','','','migration 7ffec584-aeb9-446f-8054-6a923fdd76e5','changed',NULL,'','','[]','[{"what":"migration","key":"7ffec584-aeb9-446f-8054-6a923fdd76e5","before":null,"after":{"vm":"00000000-0000-4000-8000-00000000000b","source":"a","destination":"b","trigger":"vmtune","profile":"","revision":0,"wanted":{},"steps":[],"overrides":[],"abort":"none"}}]','d47cb2168a0b49bd2256d9110a5c5038aee6f108b16709e5fcfeea616680947f');
INSERT INTO "audit" VALUES(17,'2026-11-21 04:30:00.000000','service','','vmtune','','','run 8d21c49b-5a06-4d75-ae3a-c2cd8fef16b4','changed',NULL,'','','[]','[{"what":"run","key":"8d21c49b-5a06-4d75-ae3a-c2cd8fef16b4","before":null,"after":{"scenario":"quick/busy","values":{"multifd":true},"profile":"tuned","revision":2,"host":"","options":{},"campaign":"00000000-0000-4000-8000-00000000000b","study":null,"imported_from":""}}]','39e1151b1fc9c2a19cc19c084956550c6e8ba09621f5471ca79141c4e53dc451');
INSERT INTO "audit" VALUES(18,'2026-11-21 04:30:00.000000','service','','vmtune','','','run 0ccdfba1-563e-4783-bcd2-accc5cc9485b','changed',NULL,'','','[]','[{"what":"run","key":"0ccdfba1-563e-4783-bcd2-accc5cc9485b","before":null,"after":{"scenario":"quick/idle","values":{},"profile":"","revision":0,"host":"","options":{},"campaign":null,"study":null,"imported_from":""}}]','aac06e4cf4232e010f7802bf8d8f97c3f40b6ef31fc18df3c8ac645ac1176655');
INSERT INTO "audit" VALUES(19,'2026-11-21 04:30:00.000000','service','','vmtune','','','campaign 00000000-0000-4000-8000-00000000000b','changed',NULL,'','','[]','[{"what":"campaign","key":"00000000-0000-4000-8000-00000000000b","before":null,"after":{"name":"mine","campaign":{"name":"mine","scenario":{"name":"mine/small","title":"","why":"","vm":{"memory_bytes":67108864,"vcpus":1},"workload":{"region_bytes":16777216,"stride_bytes":4096,"dirty_mb_per_s":0,"zero_percent":0,"random_percent":0,"idle_ms":0,"beat_ms":0,"cpu_ring":0},"values":{},"steps":[],"transport":"tcp","warmup_s":0,"cooldown_s":0,"max_iterations":30,"max_seconds":300,"count_ring_full":false,"ends_at_limit":false},"arms":[{"name":"stock","profile":"","revision":null,"values":{},"scenario":{},"qemu":"","testbed":"direct","against":[]},{"name":"tuned","profile":"","revision":null,"values":{"multifd":true},"scenario":{},"qemu":"","testbed":"direct","against":[]}],"cells":[],"title":"","why":"","blocks":2,"seed":7,"primary_metric":"total_time_ms","margin_percent":5.0,"warmup_runs":1,"other_environment":"refuse","kvm":false,"overrides":[],"published":null},"host":"here","state":"running"}}]','912e5173eb84198986dc50af0d2aa8e3048206732429d961e87a6853dfaeaf74');
INSERT INTO "audit" VALUES(20,'2026-11-21 04:30:00.000000','service','','vmtune','','','study 00000000-0000-4000-8000-00000000000a','changed',NULL,'','','[]','[{"what":"study","key":"00000000-0000-4000-8000-00000000000a","before":null,"after":{"name":"better","spec":{"name":"better"},"host":"here","state":"queued","campaign":null,"result":null}}]','29717489a36c54a0fb776487211ad4fce7606a220db3e0569e39dfb8501fcafa');
INSERT INTO "audit" VALUES(21,'2026-11-21 04:30:00.000000','service','','vmtune','','','study 00000000-0000-4000-8000-00000000000a','changed',NULL,'','','[]','[{"what":"study","key":"00000000-0000-4000-8000-00000000000a","before":{"state":"queued"},"after":{"state":"paused"}}]','f89ac8b3ae3a4f4774b81a6bcb1447e474f9423187c11642a60ba7cd3cd43e45');
INSERT INTO "audit" VALUES(22,'2026-11-21 04:30:00.000000','service','','vmtune','','','campaign 00000000-0000-4000-8000-00000000000b','changed',NULL,'','','[]','[{"what":"campaign","key":"00000000-0000-4000-8000-00000000000b","before":{"state":"running"},"after":{"state":"paused"}}]','86b344440740b84006d34792662603b4800bee85468da8da64f17f52bf273e8f');
INSERT INTO "audit" VALUES(23,'2026-11-21 04:30:00.000000','service','','vmtune','','','change 00000000-0000-4000-8000-00000000000b','changed',NULL,'','','[]','[{"what":"change","key":"00000000-0000-4000-8000-00000000000b","before":null,"after":{"scenario":"q/busy","metric":"total_time_ms","since":"2026-11-21T04:30:00+00:00","triage":"open","note":""}}]','fce95154f0f51f8df1c5a7b931bfbc5f5fb1600dd974cabe96b214cf0722ecd9');
INSERT INTO "audit" VALUES(24,'2026-11-21 04:30:00.000000','service','','vmtune','','','change 00000000-0000-4000-8000-00000000000b','changed',NULL,'','','[]','[{"what":"change","key":"00000000-0000-4000-8000-00000000000b","before":{"triage":"open","note":""},"after":{"triage":"known","note":"a new kernel"}}]','b5059c6c3651aa4ab7d654c5d75cdab38638c282f24922365a12bdb8faa6e5e7');
INSERT INTO "audit" VALUES(25,'2026-11-21 04:30:00.000000','service','','vmtune','','','schedule nightly','changed',NULL,'','','[]','[{"what":"schedule","key":"nightly","before":null,"after":{"document":{"name":"nightly"},"every_s":86400,"host":"here"}}]','89de7ecec3d59d89b47d411e2d9ef988426f64ba6457fec4b2dd9b6ead4fdeae');
INSERT INTO "audit" VALUES(26,'2026-11-21 04:30:00.000000','service','','vmtune','','','token aaaaaaaaaaaa','changed',NULL,'','','[]','[{"what":"token","key":"aaaaaaaaaaaa","before":null,"after":{"name":"ci","scopes":["read"],"hosts":["a"],"labels":{"tier":"db"},"creator_kind":"user","creator":"0","expires_at":null,"revoked_at":null}}]','0fce1dd728595f70f3765ae7b163498ad6c839b12d6415c394659838e3deba8c');
INSERT INTO "audit" VALUES(27,'2026-11-21 04:30:00.000000','service','','vmtune','','','token bbbbbbbbbbbb','changed',NULL,'','','[]','[{"what":"token","key":"bbbbbbbbbbbb","before":null,"after":{"name":"left","scopes":["read"],"hosts":["a"],"labels":{"tier":"db"},"creator_kind":"user","creator":"0","expires_at":null,"revoked_at":null}}]','351d1af924416cd17e535594b48d21986d077042fee6d699da87b01f7795aed7');
INSERT INTO "audit" VALUES(28,'2026-11-21 04:30:00.000000','service','','vmtune','','','token bbbbbbbbbbbb','changed',NULL,'','','[]','[{"what":"token","key":"bbbbbbbbbbbb","before":{"revoked_at":null},"after":{"revoked_at":"2026-11-21T04:30:00+00:00"}}]','519a7152816a7c4fb8b722a9e43b111dbc3e378e15e96208864e9aeb71fea872');
INSERT INTO "audit" VALUES(29,'2026-11-21 04:30:00.000000','service','','vmtune','','','session aaaaaaaaaaaa','changed',NULL,'','','[]','[{"what":"session","key":"aaaaaaaaaaaa","before":null,"after":{"name":"ci","address":"127.0.0.1"}}]','1d320246116720e01a1f1e225e3cea73692fd749152cab0d4f88703907ea89f1');
INSERT INTO "audit" VALUES(30,'2026-11-21 04:30:00.000000','service','','vmtune','','','host a','changed',NULL,'','','[]','[{"what":"host","key":"a","before":{"owner":""},"after":{"owner":"here-vmtune"}}]','c773de8530ee18b65e9b0e0966aa530fa7983711bf1d0e08211ca17fa837fb37');
INSERT INTO "audit" VALUES(31,'2026-11-21 04:30:00.000000','service','','vmtune','','','evacuation 00000000-0000-4000-8000-00000000000a','changed',NULL,'','','[]','[{"what":"evacuation","key":"00000000-0000-4000-8000-00000000000a","before":null,"after":{"host":"a","destinations":["b"],"order":"priority","priority":0,"max_outgoing":1,"stop_after_failures":null,"profile":"","local_disks":"copy","state":"running","reason":""}}]','698fcdb77adbef189e42fe09ae9cd42402ed9d10a2a4cdd9f77971389ed724dd');
INSERT INTO "audit" VALUES(32,'2026-11-21 04:30:00.000000','service','','vmtune','','','evacuation 00000000-0000-4000-8000-00000000000a','changed',NULL,'','','[]','[{"what":"evacuation","key":"00000000-0000-4000-8000-00000000000a","before":{"state":"running"},"after":{"state":"paused"}}]','cbc80dafdf1b659be67e821337b695ef5cbad3b7f4a1885f6f3ca71eb24d8c85');
INSERT INTO "audit" VALUES(33,'2026-11-21 04:30:00.000000','service','','vmtune','','','webhook ops','changed',NULL,'','','[]','[{"what":"webhook","key":"ops","before":null,"after":{"url":"https://ops.example/vmtune","events":["migration.ended"],"active":true,"old_until":null}}]','4431d8563de58dfda75254621d1b380bf774bafdb09b45808956f7e90f9a58a2');
INSERT INTO "audit" VALUES(34,'2026-11-21 04:30:00.000000','service','','vmtune','','','webhook ops','changed',NULL,'','','[]','[{"what":"webhook","key":"ops","before":{"old_until":null},"after":{"old_until":"2026-11-22T04:30:00+00:00"}}]','371853316cc402b4f7a3ca524af77f1cf9f105dd6e41bbaa4fb1bb800c2a48c8');
CREATE TABLE audit_cuts (
	number INTEGER NOT NULL, 
	hash TEXT NOT NULL, 
	at DATETIME NOT NULL, 
	CONSTRAINT pk_audit_cuts PRIMARY KEY (number)
);
INSERT INTO "audit_cuts" VALUES(2,'17fca7e59108dfaa0a0922d8de368c78c127211e59527d5e836065ad997ecd0d','2026-11-21 04:30:00.000000');
CREATE TABLE campaigns (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id CHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	campaign JSON NOT NULL, 
	forecast JSON NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	host TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	CONSTRAINT uq_campaigns_id UNIQUE (id)
);
INSERT INTO "campaigns" VALUES(1,'0000000000004000800000000000000b','mine','{"name":"mine","scenario":{"name":"mine/small","title":"","why":"","vm":{"memory_bytes":67108864,"vcpus":1},"workload":{"region_bytes":16777216,"stride_bytes":4096,"dirty_mb_per_s":0,"zero_percent":0,"random_percent":0,"idle_ms":0,"beat_ms":0,"cpu_ring":0},"values":{},"steps":[],"transport":"tcp","warmup_s":0,"cooldown_s":0,"max_iterations":30,"max_seconds":300,"count_ring_full":false,"ends_at_limit":false},"arms":[{"name":"stock","profile":"","revision":null,"values":{},"scenario":{},"qemu":"","testbed":"direct","against":[]},{"name":"tuned","profile":"","revision":null,"values":{"multifd":true},"scenario":{},"qemu":"","testbed":"direct","against":[]}],"cells":[],"title":"","why":"","blocks":2,"seed":7,"primary_metric":"total_time_ms","margin_percent":5.0,"warmup_runs":1,"other_environment":"refuse","kvm":false,"overrides":[],"published":null}','{"runs":5,"detectable":null,"noise":0.1,"noise_reason":"assumed","duration_s":60.0,"duration_reason":"assumed"}','paused','the lab is down','here','2026-11-21 04:30:00.000000',NULL);
CREATE TABLE disk_chunks (
	migration INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	last_at_ms INTEGER NOT NULL, 
	samples INTEGER NOT NULL, 
	packed BLOB NOT NULL, 
	CONSTRAINT pk_disk_chunks PRIMARY KEY (migration, position), 
	CONSTRAINT fk_disk_chunks_migration FOREIGN KEY(migration) REFERENCES migrations (number)
);
INSERT INTO "disk_chunks" VALUES(1,0,2000,4,X'7801AB564A2C89CF2D56B2AA564AAA54B28A36343030D031D08150B13A4A05A9454A5686B53A4A258945E9A92540154A6529894A3A4032094CC2D840B5C9F90599A929F1499525A9C418985F929883A6D8C4C0D20C683B10225B0D36301EE892780C63D1549617659694A4E6414CC5D0816E722D0095104AC0');
CREATE TABLE drift_scans (
	host TEXT NOT NULL, 
	asked INTEGER NOT NULL, 
	answered INTEGER NOT NULL, 
	checked INTEGER NOT NULL, 
	drifted INTEGER NOT NULL, 
	without_profile INTEGER NOT NULL, 
	skipped INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	service TEXT NOT NULL, 
	ended_at DATETIME, 
	took_ms INTEGER NOT NULL, 
	problems JSON NOT NULL, 
	CONSTRAINT pk_drift_scans PRIMARY KEY (host), 
	CONSTRAINT fk_drift_scans_host FOREIGN KEY(host) REFERENCES hosts (name) ON DELETE CASCADE
);
INSERT INTO "drift_scans" VALUES('a',1,1,2,1,3,1,1,'here-vmtune','2026-11-21 04:30:00.000000',40,'[{"field":"vms.00000000-0000-4000-8000-00000000000a","code":"monitor_busy","message":"another client holds it","remedy":"let go of it"}]');
CREATE TABLE environments (
	fingerprint TEXT NOT NULL, 
	description JSON NOT NULL, 
	CONSTRAINT pk_environments PRIMARY KEY (fingerprint)
);
INSERT INTO "environments" VALUES('0123456789abcdef','{"cpu":{"count":2},"accelerator":"kvm"}');
CREATE TABLE evacuation_vms (
	evacuation INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	vm CHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	memory_bytes INTEGER NOT NULL, 
	priority INTEGER NOT NULL, 
	state TEXT NOT NULL, 
	destination TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	findings JSON NOT NULL, 
	overrides JSON NOT NULL, 
	migration CHAR(32), disks JSON, "values" JSON, 
	CONSTRAINT pk_evacuation_vms PRIMARY KEY (evacuation, position), 
	CONSTRAINT fk_evacuation_vms_evacuation FOREIGN KEY(evacuation) REFERENCES evacuations (number), 
	CONSTRAINT uq_evacuation_vms_evacuation_vm UNIQUE (evacuation, vm)
);
INSERT INTO "evacuation_vms" VALUES(1,0,'0000000000004000800000000000000a','guest',1073741824,7,'waiting','b','','[]','["optmem_low"]',NULL,'[{"target":"vda","kind":"file","path":"/images/guest","format":"","device":"disk","read_only":false,"shareable":false,"cache":"","discard":"","backing":[],"identity":"","capacity_bytes":null,"allocated_bytes":2147483648,"qcow2":null,"encrypted":false}]','{"copy_storage":true,"copy_disks":"vda"}');
INSERT INTO "evacuation_vms" VALUES(1,1,'0000000000004000800000000000000b','other',2147483648,0,'blocked','b','QEMU says: no','[{"code":"vm_cannot_migrate","tunable":"","evidence":{"reason":"no"}}]','[]',NULL,'[]','{}');
CREATE TABLE evacuations (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id CHAR(32) NOT NULL, 
	host TEXT NOT NULL, 
	destinations JSON NOT NULL, 
	"order" TEXT NOT NULL, 
	priority INTEGER NOT NULL, 
	max_outgoing INTEGER, 
	stop_after_failures INTEGER, 
	profile TEXT NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	ended_at DATETIME, intent JSON, local_disks TEXT DEFAULT 'profile' NOT NULL, 
	CONSTRAINT uq_evacuations_id UNIQUE (id)
);
INSERT INTO "evacuations" VALUES(1,'0000000000004000800000000000000a','a','["b"]','priority',0,1,NULL,'','paused','','2026-11-21 04:30:00.000000',NULL,'{"max_silence_ms":500,"deadline_s":60,"max_slowdown_percent":null,"max_bandwidth_bytes_per_s":null,"may":["compress","zero_copy"],"otherwise":"refuse","relax":[]}','copy');
CREATE TABLE events (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	at DATETIME NOT NULL, 
	topic TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	data JSON NOT NULL
);
INSERT INTO "events" VALUES(1,'2026-11-21 04:30:00.000000','migration','1','{"state":"active"}');
INSERT INTO "events" VALUES(2,'2026-11-21 04:30:00.000000','migration','2','{"state":"active"}');
INSERT INTO "events" VALUES(3,'2026-11-21 04:30:00.000000','migration','3','{"state":"active"}');
CREATE TABLE forecasts (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	migration INTEGER NOT NULL, 
	basis TEXT NOT NULL, 
	made_at DATETIME NOT NULL, 
	model INTEGER NOT NULL, 
	figures JSON NOT NULL, 
	inputs JSON NOT NULL, 
	happened JSON, 
	held_at DATETIME, 
	CONSTRAINT fk_forecasts_migration FOREIGN KEY(migration) REFERENCES migrations (number), 
	CONSTRAINT uq_forecasts_migration_basis UNIQUE (migration, basis)
);
INSERT INTO "forecasts" VALUES(1,1,'before','2026-11-21 04:30:00.000000',3,'{"ends":true,"total_ms":{"low":9000.0,"likely":20000.0,"high":30000.0},"silence_ms":{"low":20.0,"likely":50.0,"high":90.0},"sent_bytes":null}','{"records":3}','{"ended":true,"total_ms":23000.0,"silence_ms":40.0,"sent_bytes":8000000000.0,"others_total_ms":null,"others_silence_ms":null}','2026-11-21 04:30:00.000000');
CREATE TABLE found_changes (
	id CHAR(32) NOT NULL, 
	scenario TEXT NOT NULL, 
	metric TEXT NOT NULL, 
	setup TEXT NOT NULL, 
	run CHAR(32) NOT NULL, 
	since DATETIME NOT NULL, 
	kind TEXT NOT NULL, 
	text TEXT NOT NULL, 
	worse BOOLEAN NOT NULL, 
	found_at DATETIME NOT NULL, 
	triage TEXT NOT NULL, 
	note TEXT NOT NULL, 
	triaged_by TEXT NOT NULL, 
	triaged_at DATETIME, 
	CONSTRAINT pk_found_changes PRIMARY KEY (id)
);
INSERT INTO "found_changes" VALUES('0000000000004000800000000000000b','q/busy','total_time_ms','0011aabb','0000000000004000800000000000000a','2026-11-21 04:30:00.000000','step','1.2 times',1,'2026-11-21 04:30:00.000000','known','a new kernel','admin','2026-11-21 04:30:00.000000');
CREATE TABLE hosts (
	name TEXT NOT NULL, 
	uri TEXT NOT NULL, 
	peer_uri TEXT NOT NULL, 
	migration_address TEXT NOT NULL, 
	created_at DATETIME NOT NULL, owner TEXT DEFAULT '' NOT NULL, machine TEXT DEFAULT '' NOT NULL, migrate_uri TEXT DEFAULT '' NOT NULL, listen_address TEXT DEFAULT '' NOT NULL, disks_uri TEXT DEFAULT '' NOT NULL, maintenance_since DATETIME, 
	CONSTRAINT pk_hosts PRIMARY KEY (name)
);
INSERT INTO "hosts" VALUES('a','qemu+ssh://root@a/system','','','2026-11-21 04:30:00.000000','here-vmtune','','','','',NULL);
INSERT INTO "hosts" VALUES('b','qemu+ssh://root@b/system','','','2026-11-21 04:30:00.000000','','','','','',NULL);
CREATE TABLE idempotency_keys (
	caller_kind TEXT NOT NULL, 
	caller TEXT NOT NULL, 
	"key" TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	action TEXT NOT NULL, 
	begins TEXT NOT NULL, 
	begun_at DATETIME NOT NULL, 
	holder TEXT NOT NULL, 
	subject TEXT, 
	status INTEGER, 
	headers JSON, 
	body TEXT, 
	CONSTRAINT pk_idempotency_keys PRIMARY KEY (caller_kind, caller, "key")
);
INSERT INTO "idempotency_keys" VALUES('token','aaaaaaaaaaaa','k','0000000000000000000000000000000000000000000000000000000000000000','start_migration','migration','2026-11-21 04:30:00.000000','',NULL,202,'{"location":"/"}','{}');
CREATE TABLE job_orders (
	job TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	service TEXT NOT NULL, 
	cancelled BOOLEAN NOT NULL, 
	ordered_at DATETIME NOT NULL, 
	CONSTRAINT pk_job_orders PRIMARY KEY (job)
);
INSERT INTO "job_orders" VALUES('0123','migration','here-vmtune',0,'2026-11-21 04:30:00.000000');
CREATE TABLE "migrations" (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id CHAR(32) NOT NULL, 
	vm CHAR(32) NOT NULL, 
	vm_name TEXT NOT NULL, 
	source TEXT NOT NULL, 
	destination TEXT NOT NULL, 
	"trigger" TEXT NOT NULL, 
	profile TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	wanted JSON NOT NULL, 
	overrides JSON NOT NULL, 
	state TEXT NOT NULL, 
	abort TEXT NOT NULL, 
	journal JSON NOT NULL, 
	outcomes JSON NOT NULL, 
	totals JSON, 
	failure TEXT NOT NULL, 
	problems JSON NOT NULL, 
	created_at DATETIME NOT NULL, 
	started_at DATETIME, 
	active_at DATETIME, 
	ended_at DATETIME, 
	steps JSON NOT NULL, 
	step_records JSON NOT NULL, reaper JSON, samples_kept TEXT DEFAULT 'whole' NOT NULL, samples_thinned_s INTEGER, prior JSON, postcopy JSON, disks JSON, downtime_ms INTEGER DEFAULT (-1) NOT NULL, total_time_ms INTEGER DEFAULT (-1) NOT NULL, downtime_exceeded BOOLEAN DEFAULT 0 NOT NULL, intent JSON, 
	CONSTRAINT uq_migrations_id UNIQUE (id)
);
INSERT INTO "migrations" VALUES(1,'72b24f653b1448c9adde3af6e19d2041','0000000000004000800000000000000a','guest','a','b','vmtune','tuned',2,'{"multifd":true}','["optmem_low"]','completed','none','[{"tunable":"downtime_limit_ms","value":300,"owner":""}]','[]','{"total_time_ms":23000,"downtime_ms":40,"setup_time_ms":7,"transferred_bytes":8589934592,"iterations":14,"missed_zero_copy":0}','','[]','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.150000','2026-11-21 04:30:00.000000','[{"when":{"after_s":300},"then":{"do":"abort"}}]','[{"number":0,"at_ms":300020,"iteration":9,"action":"abort","reason":"300.0 s passed","effect":"refused","detail":"no","forecast":"","steering":false}]','{"policy":"predict","ring_entries":65536,"end":"migration ended","filled_rounds":1,"ring_full_exits":null,"reason":"","round_count":400,"rounds_before":2,"skipped_rounds":3,"interruptions":1,"fullest":0.61,"shortest_interval_ms":50,"longest_interval_ms":400,"waits_ms":90000,"costs_ms":12000.5}','whole',NULL,NULL,NULL,'[{"target":"vda","path":"/x","created":true,"intended":false,"format":"","qcow2":null,"needed_bytes":0,"total_bytes":9,"copied_bytes":4,"ready_ms":null,"bytes_per_s":0,"written_bytes_per_s":0,"left_ms":null,"converges":null,"identity":"","source_image":"kept","source_image_reason":""}]',40,23000,0,NULL);
INSERT INTO "migrations" VALUES(2,'7ffec584aeb9446f80546a923fdd76e5','0000000000004000800000000000000b','other','a','b','vmtune','',0,'{}','[]','queued','none','[]','[]',NULL,'','[]','2026-11-21 04:30:00.000000',NULL,NULL,NULL,'[]','[]',NULL,'whole',NULL,NULL,NULL,'[]',-1,-1,0,NULL);
CREATE TABLE noise_floors (
	environment TEXT NOT NULL, 
	scenario TEXT NOT NULL, 
	metric TEXT NOT NULL, 
	scale TEXT NOT NULL, 
	design TEXT NOT NULL, 
	size INTEGER NOT NULL, 
	effect DOUBLE NOT NULL, 
	observed DOUBLE NOT NULL, 
	campaign CHAR(32) NOT NULL, 
	made_at DATETIME NOT NULL, 
	CONSTRAINT pk_noise_floors PRIMARY KEY (environment, scenario, metric), 
	CONSTRAINT fk_noise_floors_environment FOREIGN KEY(environment) REFERENCES environments (fingerprint)
);
INSERT INTO "noise_floors" VALUES('0123456789abcdef','quick/busy','total_time_ms','ratio','paired',6,1.03,1.01,'0000000000004000800000000000000b','2026-11-21 04:30:00.000000');
CREATE TABLE operations (
	vm CHAR(32) NOT NULL, 
	kind TEXT NOT NULL, 
	operation CHAR(32) NOT NULL, 
	taken_at DATETIME NOT NULL, service TEXT DEFAULT '' NOT NULL, 
	CONSTRAINT pk_operations PRIMARY KEY (vm)
);
INSERT INTO "operations" VALUES('0000000000004000800000000000000b','migration','7ffec584aeb9446f80546a923fdd76e5','2026-11-21 04:30:00.000000','');
CREATE TABLE periodic_tasks (
	name TEXT NOT NULL, 
	service TEXT NOT NULL, 
	begun_at DATETIME NOT NULL, 
	CONSTRAINT pk_periodic_tasks PRIMARY KEY (name)
);
INSERT INTO "periodic_tasks" VALUES('retention','here-vmtune','2026-11-21 04:30:00.000000');
CREATE TABLE "profile_revisions" (
	profile TEXT NOT NULL, 
	number INTEGER NOT NULL, 
	"values" JSON NOT NULL, 
	note TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	steps JSON NOT NULL, intent JSON, 
	CONSTRAINT pk_profile_revisions PRIMARY KEY (profile, number), 
	CONSTRAINT fk_profile_revisions_profile FOREIGN KEY(profile) REFERENCES profiles (name)
);
INSERT INTO "profile_revisions" VALUES('tuned',1,'{"multifd":true}','first','2026-11-21 04:30:00.000000','[]',NULL);
INSERT INTO "profile_revisions" VALUES('tuned',2,'{"multifd":true,"multifd_channels":8}','more','2026-11-21 04:30:00.000000','[{"when":{"after_s":300},"then":{"do":"abort"}}]','{"max_silence_ms":500,"deadline_s":60,"max_slowdown_percent":null,"max_bandwidth_bytes_per_s":null,"may":["compress","zero_copy"],"otherwise":"refuse","relax":[]}');
INSERT INTO "profile_revisions" VALUES('gone',1,'{"tls":"word"}','kept','2026-11-21 04:30:00.000000','[]',NULL);
CREATE TABLE profiles (
	name TEXT NOT NULL, 
	description TEXT NOT NULL, 
	current INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	deleted_at DATETIME, 
	CONSTRAINT pk_profiles PRIMARY KEY (name)
);
INSERT INTO "profiles" VALUES('tuned','with multifd',2,'2026-11-21 04:30:00.000000',NULL);
INSERT INTO "profiles" VALUES('gone','',1,'2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000');
CREATE TABLE reaper_chunks (
	migration INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	last_at_ms INTEGER NOT NULL, 
	rounds INTEGER NOT NULL, 
	packed BLOB NOT NULL, 
	CONSTRAINT pk_reaper_chunks PRIMARY KEY (migration, position), 
	CONSTRAINT fk_reaper_chunks_migration FOREIGN KEY(migration) REFERENCES migrations (number)
);
INSERT INTO "reaper_chunks" VALUES(1,0,103256,400,X'7801559AD98EDCC81145FFA59F4980CC8DE4FC8A2018B22D0302647B30120C1803FDBBCFB9513D1E3D5477563297586EDC884CD6EF6F9FBEFFE59FDFDE7EF9FDEDAFFF7DFBE5C3DE5ADFCE756EA3B5AD1F7C56DBCEEBDED6D89EB19DE743CFB19DCFB99D07DF1BFFC7DA7A7BB6E1E839B7F63C7C78D61F9E37DA8C676CBFAFEDBCEFAD1DF7D6CF636BACDA3BF32FDB3C7FEC3FB7D66ED6EA1B43FB64EA9D9D9B3BD375F2A477469CEED6B736D8E5B28F190AE4AC8EF813A118725D2C3E5109B510B62B30535B3B1843DB5DFC9C2CE572932D26FD93B59EB5B55B0111BC2FC65E6C431F9F81027D307ED18F08FDE6C39CD650A4B39FCF7DC6BA1D6334943B8722B357BB98BFB65BBB9D1B33DB3363F0365106699A2BD33F4E662AED409AC9EE6B6E3716E62BFA74E4EC033D30E889E1BBA330EA68C8383415CF06C33BAB681B7C3874EF890CC8D63AAE65DCA558D8FD60A8BEC1B7377BEA4A566FEC7B1E888A251A163D233DFF75ABAB217BD7527C6F00479574CED06107DF91D9A10B816E8660A076A3DEE96EA884AAE370A8068D5EAED29060E023EDED63ED2D123A3644BEF62000667623B1E34A748F899C5A5C4B47561F6353BE07D8E8F068DAE53FA1DD58BB2CAE9FF184DA6A4B360860B14F7C0C5051B4A18CEB69496636C0185489535714CA785614E2E876090E0028F83A0B034A2555F24C751A0EEA98AAE96A6DC012E3648C4E32B21EDBCE1F9B01836D4EA0DEF1F1A9B60C692E3BF5A5B867293CD4C062271047171F180CA93AD28A34E1CED4C6EE5DAF20AC92067484804E8D227183CF9E0DC77576D012A24BDF77230DE1D8E48C3F911F139CE871C69FF8560881D7FE32EC80116274D963314F85D839818473E98A334512729E0BD531B8C873481785FC076C7286EE9273C21D0C4D9819EE7088681BB084E6123A8DEF09CD784568E15E702F0DC82C4DA02A4D4247F38A4A4420203B52B78B358504E6356486BC85FD1ABCD6881DE188859D1216087B608C381BAB833F518A324D3C6842BA86216DE4196E2F49259D4E60EA0D1D7C0E24932924101C2F5E7443C3866A10A06A774868881F3409A7F1D8ED64119565880E2F5CF05D4C046A2C458C45794501D9EF115EA48E01E43230854BAEF3E3F6F6EBE7DFDE7E397F6C6F5FFEF5FDF36FFFF9F4F5CF0944DCEE82A6F30F97B66D3FE1BF5D0AD9F1272260CFDD10A00F22C491068F8CBE9DDBCE264CE0A3FEF400FB5D20E8E5BD39149B60E61D812438FA90186C6643BE3341DBEE5D3A63E22E9DEF98E444E513B4ED7261637F2CBE83976C698462AE5D676A02504BD72EA32B371F197D0F681544DA407AA31909100977EC68804E22830D3365430034DC71E48E8CAA881376568F01D06157AF13E2D30B2FCD7D9A75B123004428A3139D701863D91A90EC263C1E1A8732007369E87DE48ED990DA6CC06ADAE9042C8E32C3A2D69E0853803398274ECC9FBB911265FC2358B1BE8201FCEE2ECDA409EA914330B357F23D8B33903F1088EA994B5F52B09CCAE8012CCB7000E574AC872ACC72316B877833AEBBCD18EAC230D6640A4A9939D3030C5D1072C1E7D2E6DA544822313AEB9B095CC143E830C58E8F5861972FD1800784BE190520B9973AB29C791A655D4E9BC9B4E889D5A053CCECB497B3F599CE11C8B243140633F1586C06F5C29B3B36D29BA0EB942BDD31D85597585477C7B1F84E486939D10CA99893132BB1ADCC132C0A017D7F82B493648111B1EA153C28BC04ECBEBB34258E598A6542B89A0E58A48640166BBC20546F2245CA8D281A782B4B7CE37CEC0415233E53D884EF2AAF724A06B00D11432C2B1930566B048B123112C98CC500CEB04AEA544AA5A3AA4C8C23DB0973238876591BFDA851E14B19EA6686109E69425B97404D68721249896FE3DA59A1D802BBB1A5AF0D1CCB38D0A079A47701846976F7046C7AC28C0086ED2A1C3306B4654DB949B0BB3F9F1DEA561C53F40EDE5469C7EB417526B0C543E025A6C2862677CA2C162CE648BCCA23961E210153454214D3D6D60917B714F9CE34A4749724849395D65AFBA4D4C53F3CF391FE524BC3D53822E40AA698C2DCC2AA481B6225C5012A1DE17F5145D5CD5F0CE252F60B9AF7AD4FD4B69C003E3CD53B813F4215AF09B53898C958310EF58FA21077C114BB83392587F31376A0C9609355AE3FE799CF5F3FFDFAEDF3DF7F4A3357180779489C62CAD89A24B99D62C41076374F21497A56DBC6086ADCF21B94633F4329AAE4C021554C81133DA6D69230C93CAA7F4BC037442BC96216A4252AD44DEE310838320972D885F843C11B4AD86F9EE011A675E9A8ADA8BE44C12D1053A42FB18B1910D75AE0323BCE648FC3852E84223668E118AACEAAF70EC456C403844C70A341A3B59EF25C43298900A429A5B2FC3A80DC4EC5CFB68FC6BEA476D70DBD1DE88FF39D7987940F913100F534090F43E6B124BB84C392B2CB01264D12BA2A4A4E70021B081E50883600C66D27B3A00E967C2A26B46710D861AA5BB7F554A759A4612D990F435B77615B5176317D22DB487FA2E7803EA5069C4A681CC90A9752CEC4C38D18A41DE6CA3E0BC82A896E4F542C0BDA01AAF1743A8655EE48E019CEC318035750F214391414724E96EE9AE7C617F847DECAD001B43022B1810BFB61C2BB121F584672B2123184C317930C07F00D51BF935699B44CD9E0AABC45C9E413369C80FBC152A294683B2851908D95C08B3910DF5BED46EDA5460678C7282B330E0C6CEDCD5AD62D8F0C8D248448B420DAB40A6B93DC783ECB5209D5E4C569867423FCEBEA4B4B937BB0FE8A3203B59B1869E40A620473E05D07E5C4EA221E07890AE1276DF217BB06FB508741CFA029FF2C207A2918959431611ED6D0A08C55CF4486C717122F2A2C2B21E2F30E6E496A112211A6AD8BFF66CAB6083D139C62E2F234E419027633A69327494D3CB200BE390180B98B8C43631A6DEE7791F884932A987E2EC26A545963BA76BF999A506A492A9FC51D6A80F9DFD55F96024FAC652DD9C266FA0977C71AEC6C27550691698A6FC1D80D686F2552056CC6D4F28658C13A8809FF246411D49B083642A11473E013D95927895600E22A116919725BA0ACB08647183CDD38906563BC71031FCF01572A09836C17D50F401B1A567D1E21461662F7DB347889F92B08C2D0E628C6EB38DD3CAD5FC201443A8685C4C26316E788253D206D57CD0E0978504533F4D5032CC571BE3CE5BEC2538F24CA96138751A45004289C113C799BB20F0040752CF0B5D890BA66AAAC293BAB8166BF84DD3435DCA657BC7C27097AC3006898143EB9444E37E99EB7A495D0C7CDA0007C8FAA56AC65C1252873CD64ABC3DCB9703C52C092E09592C0555C9552817D53A6A42EBD59AA7B1E7A016F95E91064C03118312A09DCDBEF772A5773EB002C1E4B29EA4191C99CF2849842FBDBFFB0BFFECD1DD154BD2731ECE1810B164DA1294D6014C22C6F9C007BE2373B2AF0E334844396444EE8D74B26D849E3A5B8EF0001BFFA9D27B7C94CDC79AC23AC03EEFEFC91F00F4E967FFBF7B79FAE2543C031B334D24901567D56A63B84D4D925A771C145EA0E0B799E4AA598FB493719B08FF774395C690D14A28C31A3492BF235CEB17AB0389562063131FD32D0605ADD9A8F06E8F70A127730B5D89CC53074B33794CB5A189BBD847322CDB30B63538998C8B182B1649649687BF0227A442D1FB7A100830D5D38C21137DE1B224415D304569D8E4C8A266D516E3DE81114E6E50308BA0278356295ED4D6804D7A5329927CBE8E443CF4FCC0C05B265AE3FB1073DDCB9209C6C92BD1C844EEE89FB103375611DB88597B626F92441101514ACB28482A7D870F3E43C34A71DB595D638C1A272CE04ED96DE39F67880F1BCEE451458E3EE8E81092DF25E30903AD6BB4B9EC426A9A35D0350B255F6E67F8E942D29032CEC38DFE7A585B71DC602DB2869208C211376040E304378F9552C587F7B8CA97C23D979AB218A8A88249E6E2E8053D80897626A84756BC9D558C9DD41CA54F4C431862376C51112A19736DE1B0268F2334F058EEB8806AFC7A93074358BC1DEFAB700C40E438A9130C39E95318D1655CE354CEED0156558B321BD178EA1E5DC69989F2D47E4E43A48C98C560C4500D23C4894115223E18AA9B9B2CA4BFE94801E9FE1104663E98868D065D95C652597EB6E6436CACA2C70908C8F0B4446B84EAE62476DE48AA8665023716E7D720D16FE4FB6483A65345080FF30844ED4650852A6B13C660943C4E4AC22DE8F45D4A416FD19CB0A464F1624052631D043164E429240015FF4F29663A0086A34450FED11A0CA2BE68D00D4B12406E7C416D8302792DBEA5E93BD09A37B4B5425D7A532610939085F23A32F542A21EA4D4EC68882553BA8A875918C68CFC5866C1342860E915648AB864777A210EA615BFD688D61FA41270D8A9F2AA5E87DFCA69E8C92F22DBF48864C170D34FCEF12818B46379D01284395F82766004610209900656FE6C34BA1382C9243695DFBA05F6A2C2F15C212A161F9D563028B117FB9C8F3BE221A58A4C9489E2F710FFF4DEFB97E4367C3071F6A353386E6D606A66A2FCC9048AC0C94344C89692CCA4686889AB19C65767C6B4D17AC7056F92949FDE3CBD7AF7973F6F5CBB7EF343E7CC0ED50F7C7ED83C970DC9D96D793CFA291DBF86197350476B72F07181ACB4433072DCB27CAE9B400F1B86DA122D52E2D59144FD1B2A65D9363329B8281C3A7E6F09A9BF76BCF913E43C1F5466A40D75BA84685630BC2C400B6C01B6C456BE2B39A812F3813F9106E5C4726E8D72B820296D3753D3653A6D3F215C17CD4DF44B3AE691F84309B13A655C0E972833E80EF383C3CCF98070B50B4390E30CFD2561D4FFB3C665061D102B873A50B60C6884935F6B829699D56DE553C8A24EECA254BA45F7810E708025B1647D9D3933777FAE9429BE9434FEB63B81CB5D23814D2B8C67BB43C7473C2A53554BF69D681322BEAA33A47B4A845690991F154F497D3ED5AAE9B94D0B5030E5E873A0C788664505DBC80A221A4CB6ECB994F7990C4FC2865CEE70ECB056B362228E6E5E69EF928F86819D57395EDBD1F8DE05481510A4C617347410C65EF7A2BE3532F443951D0325571C3E23822285DA9A6661E1281A0848704EABC556582A840CB909D819B2764C2C925E88BABF027E5223DBE5EA162B5857F38CAD0F2FC413941CB1AB5CC31F5681C64EAE7BAD2A74485A316D5116F2A68759D7744754E02EB74DD5CA307E29EF43936D16795FD0A3CA89AB7688EA3AFDC6866BB5DC457A565EFBCDC2D8C8319AA4D9E7A64A542759C4546C182249C3801767186455E5FD913EC908219AEAD5A5027C704F39D18E68CC643CB47DE65D172F3D828EF3F6E379A0644A84610ADF8132BCCE0CA6A90010CCB0BA900317566DC428A38831C4C4FE1E44E1C087837E5B2F02025262DEB19E6D8C7D39E285966B144C93431855FBC1E9F89E59540C81654032B68B32E20D7B28A1743B3E43438D26784515EF354B22503BA2FC43D8B913018858E730DFAB815516677C2A22A2A1B5AEFAD0835BC0D2C65D98C2AC18565AE9093997B44DD413C93BCDCCC7419DAD526115D146A93BC638BF54D3B736A1DEF9AB88A7159BCCAD5162DCB202EF27CEAD4780EC4D5FADE7E1535935860E7D71A548DB462D797E08856F682410BB6D3FA23B0B5282F1B2A2E4CC8DCD415C57EC80466E85B14392B9167ED37BBD279233ACA601C8766B8C3BA7A451F3347945DA4ED62387D1374E4E5601E9A4B28E5596D58B9C4D7545F9CEFDC14312BE5B027144B97E5198590E389811566B178E4EA853E8FDE10352DAF7DB85EB5054AA6AF1641093AC4719EE956E503F2062FDB79EAFBD395E8F235653DC5B920D67DBD32AF951791C0CD902B53FBE03F5A66CEE92933681FD58766051889A6ACE8A5FE8BECA5A8E201F448FC097BDCC622FE32859B365AAB4A6BB7B0088AD97D610B44E8CB39A9521DB986AA88BE49F159D914D417BBE1E2E22D4B9652960A2EEE3759BFE0078973A07127AAC6152ED1AB235A4112555D58F119356606EE3869597196B01E212B31513BBCB044D8AE1408FE36856B44262C20C29DAD8B58C8B448EDD12F7D1E71CA0DA4644E860CB39E7E9FFAC7F6547C956F731466D41079292852020902632609D58BE06E8F273BD89B56B24B8084FC230F7313197E82373194C372E44DC5043580A312D6C0733500555278EB54B10B2514AB7B82E2869461C362F2C8F6642D7E4B44DF7B0CC17DAF1E20541E4C05511BA140AAB0EC1DB6B2C89FC9DCDE44BD4C90B88A641EAC82F54A47613FCA500E3AD145AED1A2BEC22B36F1AEB732AA0554F98280A9D2C4FB2B30C68445E2E0228B960551D521FE2665040C9ECDB84CE2A9562DD2F57A9FAB756700BF00CB57F530355D5460909812FB5B082E31EDB3BE8D9C00128064AA857DA2D39B735E2830CE232A69899607AF4AB4FE100BAEA4CF572AEB7E395F8C0D8CC3DB255AFE008873867D042E17D8B4A4DFAA61E0508E073E84CA61005BB02FD76D9960419616BC129DF3439024552F4CDE6B066193BD2AC7933199972C834E29B727E2AFA7C040128F4A16CF796819CFC99F1DFD09C50AFAFD154A152CBED8E3D4C9530F8C54D2B47C69C189919687EA95005320853094029F3ACC3BDC57ACFC1C875634CF127A8FF2993E4A3762CF715EB2D5B8FC762D1CE31515A59BAB001A7E1BE40C5C4A8D9AD6ABD6B692ABFC2C7B16687C7159D6F598FB3A3AB06916838BAA3511EE55D7636505F2DD4C553CFEAA0A1E75F3A03D1A0B228799A5A9B69D00D556781069C9B9065865614895FBFED7F07293D415E3118E55D9C1482B70F43E378E5E56BCC92E83CA74D699C9B22FE4EA5D50D2572E408B91B022765654CE6255FC7A7D32923EEBD76E81BE4EACF0363092473C8EC6EBA6F48A2DB11AEEF5B451658C27CB578DC138AA5DF6B26633C8538C578D0FA85241E62232A2E5D45139D6CBC90A224C5748022D55B8104DF882C57C1F05E3D0CA4BE52CEB91F795A5B4AC7B5221B1952EA106451E8DEC7BD62A27FC3146A9C981947B228781DA725DCE8D3985911749704A929F63555D21C51415267727783D80974C724762DDDB9CAA70BD9AE7A295552CBEB9D2FFF8FF53F571FCF8F13F11E6D6F2');
INSERT INTO "reaper_chunks" VALUES(1,1,111027,30,X'78015593EB6A5B410C84DFC5BFB5B0BAED25AF6242495B17026E1BE2502821EFDE4FE7479380ED236BB5D26866CEEBE9E1E5CBCFDBE9EEF5F4F5EFE9EEACDD33557499689F6266E219127D91EBA2C9574374A6F870F1AEE22BC46388DA946D6294F9E4EBB4998327B9A06CCEE3BA8D25B655AC3B6D693F1935D7BD9C9E2ECFA73B7D93D3E3AF97CBF39F87EB4760162E4D35A58D7D40D36132549AE994165DDA645EE7CC97B44CE00CF25C32703675069A00BB25E71AEC0090A656CB5269C1959E474B55B61CB4552AACCF8FD82ED787A7DBE5FB27681B86C0C6FE6D26DB68F5724BC9C262060BCD36A18F90D1A16A2DFE0D73590E385F055337650E53BA586583A5397C36CD60ABAC5D37FBAB0F4E684AA1CE2DE6ECBE4AAFBD76CDA14E77D87FD01D46BFFDBE7D92392DB858100E4A6CD3121D9A16B812053D5B206C227C9B5406DB051F6755D39A71A0024FAD52C4C30068AA53F053D0D4C83A7E3088744E2901B5BD8B5DD87E3C5EAF8701AF8FB71782F3B99A68EE7BC18E986574A200D988CA45EF92F5843A4C40E4B8729485CE45554EAD5C81DF555F1E0E47C4731A2EDE4154BCA51394FEB96A8043FFAE9B2387C4AE94954B6A40E05D5B75711C0E1B44091B23EB425193A30638225B2F708EB9342B32DC0519476E436C7531C4B42CC0B670C971AAE51C2F4CC64B356BEC60435E934AE1A83CD005BAC3C0FDBBBCBDBFBDFD03BCEAD839');
CREATE TABLE run_chunks (
	run INTEGER NOT NULL, 
	series TEXT NOT NULL, 
	first INTEGER NOT NULL, 
	rows INTEGER NOT NULL, 
	packed BLOB NOT NULL, 
	CONSTRAINT pk_run_chunks PRIMARY KEY (run, series, first), 
	CONSTRAINT fk_run_chunks_run FOREIGN KEY(run) REFERENCES runs (number)
);
INSERT INTO "run_chunks" VALUES(1,'samples',0,60,X'7801ED98E96E1A491485DF85DFD552ED4B5E258A10B1DB09128B05ED9971A2BCFB7CA768304691ACF9E1994813234351CBADBB9E7B9AEF8BD5B4DC1E171FBE2F3E3F2F3E7CF4D65BE3ACFE1DFFD1B4DA3F34C5B07FD342983784D3D4FCE14CD4A233ADF1D14F48C665E84F0BBECFBC08D10E9DF326E5ABA5F9F22E0D815DE6E9DE8B52F357DDE64C38DD7D75BF449E14D0A7FF64168FE361F1C1FD308BE3B49A9EB0FBE3627537ADFF1817E6F7E0B713E64CB8DB6F1F37E334DE2F4899F5341E56D37ABFBB148933F68DD7BBECB84EDFCFFBA7DDFDEAA0929D0E4FA379586D8EEFF9FEFFBE04CF4F87D5EEF8301E0EE3FDF2F3F334BE40A6F3D5B59A7D32AD341742033CBDCBCDD50E86D1D6563D28EAB24B2DFB6C9A75917D42BD14926B0570722E581F22239F4308A9080823CB25807CAEC55A1B077C01DD4AE9989CAB77916DAE34DF42065B33AB4D78EB7CF0B9B4C481680B5F0AD29ACD2D3BDDD0922FBC74D4055E128CB4E63308CA5D09C91D885B4DD932F21EFB4A419EB3C5269B005C5FAB4536AAF8506CCC7D8E4B6B2848F195ED2E81CF285252B43A11430B1C635472F15623176329D6EBDE52A2AF164D5DF03ED6A67B6D89A9B88EEBB5F988B998108BCF0CF8A83661B66D05C3D50AAAF5D5CBEB18E542ED66176EC3A75AC552B6B2EAB26DAE3BC036B6E92A8BF1ADF70A1F3D11401EC16CC516FC2F0B738F2B33A5F630C59C6BECCEA939C690698E01D7595A4E0BAE86DC7B596BCD06398EF321E12584A5A8C0CABA866AB5684A8EB0D7057E18B7ABF56EBDFB72936DCDD71462248EC325DD86977C1B30614EB8E125E3864BCAB17ECE39D6CF49878073D60D893F421C6E108EBCC3E2104B30EC3E671032CE292419730E317B4E22EEB37316B1E19C466C38E711B3E7441A125E0BB8FFE6EA1C1321B239EAE6734620D8CD29315C7262B8240516CF59C1C6735A0C1442293EA69B0B84E6C1E69243A27AA4D11CD1E112D281622E546D7C397A1DAD693FAD3637918ABE454A52D9F556BB7897F56BFDBE8D87FDF271F5E50AB608A533D0BD66A8A66A420505708E21BFAC21082AE2644231A165F6805EA6A508C9021A420CD61466423F1AA066008DE68539B97108B033A055E5640878177E46A0112A0802B010064E52FD9C04D98250488049EDA108786A322B89659F50C317421415265023462147ED5AA16B6683B7DCE248202A2DB1C38A7DFA608841440F557D053D82A78A415A41B48C01B70CE5C44DAE19700811B15E3B6EB73F6C89EC8DEB28000C03E9390944A0485245FA1A4041EFC14566403879808241E9882A29E154A00DED0378C52AA5C6CE4ADB405A06E73C18A8FD5E333983AEC165DF83421A05DB2802D6F40E9668DCF038CE01EAF020992DE3888B6DC00F33740F8D351308A3A28786857EA27BD90F145370B889A602EAD2776843E8EC03F58CB65E5AE550B88B80B39F37C614886638C13BE6610BC0A25B641787918079BA1758E01D84943EF20CDD0A39988A26193493CC3E9F1A63A0A59FADE93A0E0AC0F2B8FE36DE16192EF9EFCBEB7E7D989E4F49B2E40963F9420E401442F3567D0F3513D2B77651483F43AED7C786C463D0EBA9577D65FA7AD83F7DF9FAF8349D3C79A32FD8772233D60C84AE120CC14150D74B8E4957B2328C2883C5547AAB4CFA0C18C31F9824C76D0E4C260A9CB6A9294B2EA978070F57291004C9F1A9D240110E054A40435F571DD20238441F28804E3FE4A9DD84489748BE4A97A6FAC9DDA48D03E27131EF600078913357223D3414E00CE045B6EBC60231618756AB28849E4A910C77506BE7884B1A23BCAA7AFA6422BD7AE7A788382EC51ADCA5F68BA9BD42D7C62C3804C731C5173533490B0EFBB3500B7C2A5586E0402A9D6D25417EA4319A90FF6C6098B0889B358913A0768C600E9626C2ADB02E311ADC6A6BC2733A0048A6CC36A010C519806E1C95302EA69419C079608FA82B00675196C2C1A08B00368455A8C341CCC6856CC3EA2E139E23B2AADD3137E8A58401007CE3C25C31CD7559364502C2A2B00627C9A955D44BD2060FA427BCFD2A05B74F9B69FDF0531A5D8870A7D1B046312442039800CB9DD500A6184B0E28B54E349AE00BF1C9A1D8C92B8989796C13A1116EE968C25CF13358092A8A898A4667B8238B90163541320A6A25922D1A0D81518BE9345A3F4D741AAD4636D36831702155EDBC531CC89230BA556500609F1810C6734204488CB5F39F902D73A23F116C654E09D3D4F34432137926299489BA2EAB9067984C9F2B9062CDE1689888E4918A8EC2441E8D3457254AA7D1490C55349AB3CC89345155DC26CE44B6CC345AC11263A2EDE31D1126EA814DE24B2707D02FA829F989E4CFE8AED540A680D1271ADD4DC42BF0076142A7D1F053A9492BA7159E6834F9A07E4C31D255549DC0407F12108DC606E644BAF0CA4CA3F538251A4D48902A1A0D1831128D86A98B33471CA68B3A8DEE343DF1A5BEFA99E7717F9CEEF68FCF376DE306206F01F3BDBE5F77B4F1AFC7F18E9F1896F7FB3F77D37A3BF69FE13EEE9E361BF38FDE32A91AE14B3C5D18C266C045B8998725453E8B81B69A4813A220A0659438795F8815B483F96822FDBC901209978B6B15585AA01F6B5E1D9F14447E3291EE0308D1AD0B9CA918454634913CE64ECE90E2C412846A9CD13D999F036175EAEDCCEB892E1069EAD3C0B50D4F6A86E4430EBA59757BF5A669DA8CEA4977E36EBAFCE00294FC1B2F90F0E6751DB0EDFA78245C9D4A2BA52EDADD9CB995F15EDFAF753B1190CD7ABB9E96172FEAE7CDF967DD5F4CC5839E6B1FC8F4E5AFA4E38FBF01741260EB');
INSERT INTO "run_chunks" VALUES(1,'passes',0,40,X'7801D554DB6ADB5010FC173F1F99BD5FF22BA598849A124A92E2D88410F2EF9D23B5C47D4F1F8AE3208F7466777666F5B67B793AFD389E76376FBBBBD7DDCD171A3C16FE97FFBE8EDDCF5990DFC7EEF1F27077559CC72CFF69DFEB4AB7E7C3C333F499D39ED5344CCC98C5C6448A44C22998A3384613EDC5F1BB493CB56D4532A803A7AC5962B0E25C387B4BA7A4486E9050B75B516882890B5424A59696E1221BA2D5455594242C430454192278B8C4BC3624DA4BA522324A87249852D88D48458D7283BC991D829C888732989AD824CD73CAD920C8531166463D1B1AA07263837CB4DE8AA726A4C542268A7A358C2615266084C90866B022B80292959E3E47371B57B406D1ACBC21EE52DEA82FADC31A3CA2041D2889BF0D99C3B44C4D371953D3BE570702E52B36A47037B3D323C487D76C082AAA1C36E406302A51E068B58F50F00068C3A82BFF2069CA1611D02623123498A395410726BC215092DD10C26623053C4E999CB0C661D18A449292A31B8C6EC04DE82A48C2FC225A7D83ACF15B68362EA31844DAAA0E4C61D90A909A0B2A133B8F42CEF6E8301573F639B1154109656D90C156E41134912C5A9082A8ADC86C071A502D0259FF7E393E9F0F17A4FCF72E4F7B88B04FFFCFC5F5CA7EBB9C6ECFF74F8F7F498A443AC782B5C45C90E0C8B1204B8309291C4B17B6871979026C25789775C19A4240702D88E882D1E21056081B84D584B9D861000CCB064714EE320244035B8A1BD8F79EA7E65E2A361FE70523EDC06348F764C1FB64564AF829AEE5639961433B963A9010B83A1B29C3FA774E7EC1C6AD8DE20ED24688FCF47E41E2D7320EC2C0CBE07A202FA7FBF3F9F878B87B3D1F3F5C462CF02A0983CF9FF8F9A8FBFE0BD11546A3');
INSERT INTO "run_chunks" VALUES(1,'silences',0,1,X'7801AB564A2C89CF2D56B2AA564AAA54B28A3637373533373588D5512A482D52B232343030A8D5514A292D4A2CC9CCCF43566962688A50555B0B002C5E15FF');
INSERT INTO "run_chunks" VALUES(1,'cpu',0,390,X'7801EDDADBAE26371105E077D9D7BF463E74B76D5E054508C80023E580321324847877BEE5DEB9081217482010348724B3B6BB5CAE5AB5AAEC9DBFBCFDFACBAFBEFDFCF68B5F960FA3CF56CFE33AEA759679B457F950E6755CE39C6BB4D98ED95F67F9705D7D9C6396631E7DCD20B58CD56BBB5A59477DD502B9FAB5665BA31ECB9A40B3AF75325F8EB10E90EFFA28676B97FF1CE73836347A1BD739CB5CADCEF16A3E3CAED55BA947ADA597BEA15EE6D9D6D1AED5C668AFC6D6E45DA9CC1C573B7D1847EB31B956ED72D657678ADB759CCBAE6BB58D5CC7A8E7E5C0BDAEFEEA39CC354FA6D728DD79837071F5D18FABF887D7C14EA92D9BD9F39CD7466A0EE7D0C3F6C7EBF0D5E2BBE8F583F763232717FB14CFDADA710A9CB395E3005FB3CFF50EF5431A44BCB633D165691EAC9665C5B45B907EB2294DED3C8FFEBA185A650D3FE1D3748E20D7298402D0AFCA8E8C7EB844F5381897DD6B2343104BA9B3F4C6C7E12B67BEE6BA7A9BABD48DCCF35A076FAE39FA6BE460A1C82515872F6FC4A9EC56C4BAAFD764E6AC4DE2571788BE81DA16E490DC728DD764668CD1F163B6B64E1F415A118A53F638325E2BA73AAC58ED3A4FC4DC880355DB56A747D0E5AB2E85FDC22AE1B70622285CABD23CC6E65E0CF9AA9FB5767B848E425F1DA014249A9BA13E142C6B4EC7B8BA4510BB1C725527F6BEEC2CF53BEFC3E9CEF3BA219CAEC51F4799F304F96EC8FC21913C695905EADDEE83AD75355E85D9A7DA404DF9C59C1B525689B778567E6E164BF6601FF9DB8DC8DF382F51416E7E86D85238526021A9EF0295552F5563299E80B860AFD21646A0CA3B34656AF05F7C2B1742EED51DA69476FAC6A137DFBB20F8505045BD6E7A1FDD811BDF56821CA80CCE77D9506FE2107E6336C7E2BC88DDD091E29B638E363AB1089DC729CE67E3CB99C0076AF2BCAECBB77EF67212D025A875F47EC454105BB739680C05F15D382E985708428EDE91B64AA3546D03A17855A48A5BEC8EC1CD404AA2D5ABE2153D0231A49CD7498A6C98C304BACECBFF4EB4AAC591C3F34B39319FA465BF404AEA882C8D8222201F8A534AF56C71F7868E751106C496B317AA728BC2AD420989DA8D38037EA23F17E56693FD70FC86EB4D006F68E093D354DE9F5B1D731CEA5D884D2A278219482D4E7AB0B00D14AF22618D908DFBC31C7A5C6902D8A5865E2D7C5FFE5161558BEA8D1C5DA4FD3CDA7E81F67700C255B61A076961065E617D643C6C57EDBD9EFA423DC63B542264189B9662512C11BDE5A341226F84405E2459491E42CC5D3C2EE447C7E1C8615520652639A509B54ED2C2F649D4A482C24AC70D399FFF615949A8C26C861088E85D127F23E24C20558FF203B1E4FF0A92E54A6D377236824D7BD7A466FC467E86148D00267241D00CF568502A1C14978A06A00A85EA1DA1D233B6104C78436A2751205D7E29C046C6968DD824322086B8A66738A038702010822720AAB73B49584D13238408DC0E89DAD028234A3E66B2125297218642227F5903E14B254855CD436E4AF36629C571242481349AA682D0A90B49487E2234B5D12C93DD2064A8AF5A559F3CBCD46116A51F2B46456355202BCF24AFE83A9058A2DCC40CC9D37236D476DBEE3D4D46530EA37D3B7595A572772B17390DCE51352EACB288295C8E6CA570C73B622EA1237009EF61388D1124AD5D6DDD082E44A4ABE351539F27BDCEDE0D3EB6B891D466A1E7BAE1F532A058B392EF7E297E86829CD48A0B916E9B85DF7AABE24A3F27B71BA1AB47C8AC598B77DF645E21B0BD50D76E8110629DDDD106BA8098F2A712224FA4E6E516F8A2CFE98623A94B7B33A90C8E90D291CF36E3EDD4103EE35420968ED2245BF3B6F0467278359F69D0E414368B21D7236E12B791790E871DAA5E551049872342BC3270A8D01BA21D763DBBBF33147EC7300971E69CED66BCD980E75A0CD39BCBF2D54F3D109FDE21F460076FCEA5CD9B1C05400EA58421CDF086A8521A234D26EDC916366BC4C615DCC4DD0DCD2E62A13A010385CE112F61CEE8A5596E4825EB01E6130472BE4D71096B1C75005E0529FC343A094DC21B3A238528EB83673AFF867C2F0D7AAC960AF159753E838E04E3CA0DC923C9361265AC604141EB9DCE4664D4E60DED8AD7B664A79C20A654CF9C197E1BFC86D2CD0C6C4EA263BE3022C387D144CDD69209364832A57C74450DC891EC273144CD0FC8D546B2B75964590509A1C766213134D8BC23A2619CEC2107841D53AAC498EB0625DEC839E4DA14AEF4AD099D75479552899F71F48614CC90DCE85085C490E8EA06ED32B1DC88C4503C2E6BA52FDA26BD390112D0B51B901AC3AB60721EC24CA6281BA769F0672326065DE6D2F3AD09BBCFA9594512B27780EC7A657A2B0974C84D284D031A1551BB11A866A308F29797926687C75966B6C8B902F15535363E9D13C2928995E0EB05B92D6D84C6C919F9929F97E16413D209F44EB3F68D980FC87B661B0A68C3AD252E3332E5667623EA4557D72DFDDDF661362A6A2DF187706DC4663A0A41313040184A8053127C6068F35A311AB5CFEE36F0A2A892A16E4D5E9119910EA254CC6832C89D907A6806D409F134AE8D705F480BD1C67251CD1ADD4F9FD2FFF60528915767849ED4E576C98E71950ECDD0FCB81119593866E8A7EBE8C6E3DC1023C047F47843D84D9C74773E43121FDF6134A5A52B1B41AB741E53B29256CAB2E32A136D3D6C7823D30CA60E8D2474469172D16DB0E1023EAC1B992606B6F9A49CCE103A5C8893A8526F64D4646B65B661397C267A913859C5B28D088C4BAAF3C25EAE1159937B1DC974B01BC1B14C8F56F9332BAE162EA8EAD4C07F239CBB4A867A9EE77A684D73869EDB1D31D988EAA23EE88A2AB866238573E5266C10FF09911C0CD761AD0975D9AB4B2A0453288270CF853643FFF455C89C3B8610F2B70A721021D01A72B349284266412CFA299A2EE10A9269524F30BF5160048590965C8D3C2DB073D3DBFCBBCC0116BF3C09482896469DB6906E24758C2D529C9B7198AB1121A66C6AE13722578D18650C149E3057D8354087CF0CB0113C36C82270A30844889D8CA54AD62CCD4E9069119DD1279D4B30C407E372C58EC0DC08316848E1DEA79035676B84863EF779A9F11BD2FE9D5DCB5D4A09476C469EE52B6BDA8DC46169F70361359E85A9514357CC94CE46D2EC890B66E6CA1F3663166F844189DD88DA3275E716A506D008538710849458C45020674F53C619173E13B108B92CE46009EE8D7073A5B992EDACF195EA472243AE9ABF1177BD334242846C1F3AA7F635918637DE2082D003C32675CC4DCB6D475C4BA2DEBD39F03040A8A4005371479E297CA4DEAF84C29737820A1AA500E72D49330DE78DEC643B37F31B1105A7A23D236B36A1F5538B52DA591408D3722B433396B73A1BC8B47C6A6FAEDB089209BA56681C7AE532666635D71A05CDCECC044978C823726F24FE645FE4722175D0101A352C4A8965AF3D76888FAF194FDE83D8D02426A3BA11C45755CBF540264479C6D988A27147F0E7694D08EDEA687EB05207B99129268ADF4D2BE9DA842E3E72D2A8DB8D989C4C0D8E5571831BCE451973F3512037A0BAD3805D7768BA0E6E2BAC24FAD8460C37D2BCE81845089231C5D53882896EEA6F4BF146722DC04B0280070A28E111F14C9FF87BDE101E799E981EFAB2287C56003A7DAE50327823A3A5378891BB2388A54C3BD49D56D0898D68FD793273F570780D11C39596FE65FC53841BC963534FEF741981B0636B47256DFAEB06D2D8435DBD4038369D55885181584CFE049962E53BD30442C9774A071331C6649835FBA8A89041312F0988E05CB93CD1160F07360F82EB79665B2A5AA0C3677392015C30DC696EC461737880EAF69096359B0579EAB9017B52353448ABB2A70ADC5D2AAF6A712708E9532AB9AB3AD5E66E148DBD98BF11C7A4909926742AD1972EF74A44D758929B20B893A9DA86311CEEBA5AEF270B2F0F3710F26881C6A3C69B50D7E55FE2F2D0914305898CEFD130EF799126D73FB3B312DD6D7223D17C438BF703C70C97C30086E4657F04C90C6E40922C82C52433E4C6E3A1B9C518B1114320B94A0827C047F43BD9724195988D4401DD955C2D959F692CE597C76E97A594F146F238911E6D5A063023F979C8C03937D18D6CD5DB936C2E2B2996BCAA89E754A42E871B113D66C9839703480E912CE5D5D2347D23E2A92026F7F52E0FDCA14E78A23B09C88D10039A9C666FE4CC5CF22137E7D01F0DECB5470FED8E168ADB129E1037D54144C9AE996A2379E247CBBCC7DA3DC46537F2A9E7D77C05B18D938E3861AF2DCD422CF479556627886E621CA18E6EBE90F88317989271ED1DA19B4A2873950298A1B241939491223A76236E22BECB9B153E29A790D008612027A3EC04F1F2350DE9ECD83C5C162EFEAE3C8071F046A29F5240746788CBD1B423FBE4DD3988491F90C7EB9CDC0E5EECCC4A4679FDC54E41F4228388B87B7781F84AEA3032859C1C07A1374D41404D47994F4D47FA3BE349F38DA85D99D8378220BE727921C0D8CCAF1BD120C9A3A18512B16273659780E5A1EA46F09AA2491586409861C47029A344F41D914F51B5A14E968AFFA08AE8AD271BE7DC00FDF022E3CDC41B148499FCE20697E4D0ACB611BF126037BFA3C153CC4678FA9E3ECB7EBD91DC94D4914AF082601EC50209C7C0BC807895DF3A2DD761B63C2886CC067B68F42262BADC080E39A124A3148415939DC23BE83605D908C6EA8DB9A5BEF2BB0B597091F15E863D8E1D84DEA82FA44126487CF1B3741F8D97BF9BD98EE751D642977441C91AFD57533776884410A1239472908F4263730A61707D20963722E9F93D51FA8D2384C61E32F20A14B5E24E106A2D85EA434784C41D3DD7EB9657912C094012F373246026A44D3D5BA5D07074234997D6C8C9737CF57AFBFCE9EB8F7E69F7F6F9FB1F7FF8EDC7B7D7DBD71F3F7FF9F4DDAFBF7CFAFE3B7F7AE027260F219E6A78A4E091C7A7373C8DF1990A9E91E819139F19F9B9203CB7A3E7C6F85C979FB7827FDD4389D7983FFDF68F3FEE7F8BFA2F6FBFF973FE5DEA57C9EFBB9FBF3E117822F044E03F1D010AF5C78F3FBCFDA296BFBEDEBEFDF4FB1FF6C3D8DF0B56E42AFFF5D0FCFE4FCF9F9E48DC117838F11313FEED91F879B1FEF8CD974FBFFBFA1F95EA4F4E3D7F7F22F07F18819F95CAF75FFEF0F1877FB6507E5ECDFF2884CFAA9F22F344E27F3C123F2BA9CF1FBFFBFA579FFFFCF9CBC76F7761FDF2BB1FBFF9E6F5FCE589C1C383A70C1E297894F051C2FF1E25FCEAAF7F0346FD6C60');
INSERT INTO "run_chunks" VALUES(1,'rounds',0,61,X'7801E596618A1D470C84EFB2BF9787D46AA9255F6531C1493660D824263681607CF77C9A7979D33E817FC48B59767AD4924A55A5F9FAF4E1CB4FBF7F7E7AF7F5E9E77F9EDEBDA88B3CABCCFFD3FFF7CF4F9F5EFF7A7AA7DF9E9F3EFEF1E5F5AFBF3FBC7D870990FCA09FBDB4D7B70F9F3EBFFE7A54F6A262B7B2D491354B7D1403E349AE8AF031C61A3ACE47A62384A9A69B458FF536A5468558C48CD993B6DB5A2BD6983609B3BE6BDEC4CBD6E4CF9C7AC6C9480B538F90E5679C9BA4A451490C3B6F9A831BB4A444ED2C819B939AA861F9D0F32D9139499833F2C8369C5CD43E9CEBD7F14ECDB0A219E1C1F4E32D7397AC615499D581764B8F729F635154759D768BA12922AA1A5E07936FB608AB12A9CAAE73DE4CC543434D9C268F381F13FAC71492EA59A7D3837A116B4BCF405DB447C74AA5070AF3A61300E6888CE9E72072D96206F493A15D7B4F6B6994A649E4E884F3369C531922D6401C6F012355AED4CC33617728F4BB68FD7E37C9C375FAB494868A592DEDD2A738F79C504DE59261CE5C7D75333DD1C8042F9F13188E470AA236CA9789AE73CA0CDC6366D53A9002CEA2961A54CFD3F31D854EC68BE1F4785C34E1CAE24F9B4BEB5E412E4FCF1C0A16275DE0AA65EA348636CFF9452D0BD541FA9A272C54EE3375B928E59FD72F691E4F8356E35EFAD08040D6F3F8EF51950B8564F2BC03EDE6B1200F5572D9813A5CA750A326A7A93B674B32A329C9EDF7D134C5A619B1E567C2B1008FA93AA177C6AC25CC704135AE3AC7DC10746801FEFD7A57722763F7B90E4930F9CAD18D3B601C948144CCD990A0F2F4AEE618B2648566C42113661105BB4BA1E85CA74CA82187B498D0E589162085C518016A77C1A12A665E62B9A0E9010DF2D7FE935895FB305004839E3C05B803791852DC4DCB8BB1E047BFFCF9F9BB8D41DF3FDA1C05E3FEEDE3DB1B6BECE545D0FF98CC050AF53FF42028EDFD33270C154EB5E6E91C64AF1337C4D39242DA50E01101A6E88E292CC8D1BA7D9C60294C19D1410618B1A729AF1458D04A4302570C646258681C3AC02EBD4E208314C023C38586B713DC1B1B5C8809664D36F3A3025E9FE81A3559B7B57563F48DC69CD7BDBD705D41AD5B4786B82AB6195B4378110688B4D145E156578CC62A6480FEDD91333BE35103A6DD1B6792BF5D78AB61E0D413DB67C55452C515035BB905874400C8FC3A281C0CF10BFD5302647EA4C12FD834DE5CC70DD756009BAC9166A5F9B12EB620688B4BD30D7DB5555DD7B18830E25E39700177DA5180064C969D62F8115279D4809330BAD67524A3DA4604A491D865C022056FBB8296B295566039001FB6A1C0FD182FCECF8643625B4B8BF1B1AB8D1D061DB73C5D2D21980ECBB5144F78146779F8361622D4585BAF85D382DD54C840CB5B0C7D0FDC98332087FBD76D2C6CF4C13C8DBD30F7DAF0B91E8415DC678075C5786F378C0282E316B941BA70772AE61786CD5B570C9D0025A6DBB5ED69F0BBE499220B6DF15D213E2087B093201074D98A66D2D6CC017F2060975CE05848EF59423442F744000F3746FB3169724387B1B5BC65B527486D33E52B2BD80CC0C7CE62BF5D8988618BE00CCC41B193EB84EC7C6219BBD1F9AEC27FAE2394CB0890110B5FD9905B0D76F4EF58321E40BF1B1B7BBDB358F8ECC0B8C62E49F2B45DA1E63443655726E6C36E615F21270EB71AA02DC6077E949D78D6D62D0239A6D1DF706C95DC101FB4C207D92198D6E1D62FA5C177F4DF52C1BFAE22A4B2A95D24E43722DB8EF8188074CD071C870FC4EB68D2278A1DB80F9BDCB620B0A17D24C4C71C63FC2E1340B767023C5F33BB2CD9E2189AF395DAF4967BE1EFBFFD0B7799B441');
CREATE TABLE run_heads (
	run INTEGER NOT NULL, 
	head JSON NOT NULL, 
	CONSTRAINT pk_run_heads PRIMARY KEY (run), 
	CONSTRAINT fk_run_heads_run FOREIGN KEY(run) REFERENCES runs (number)
);
INSERT INTO "run_heads" VALUES(1,'{"migration_ms":2000,"migration_ended_ms":7797,"ended_ms":9797,"beat_interval_ms":10.0,"totals":{"total_time_ms":5797,"downtime_ms":40,"setup_time_ms":7,"transferred_bytes":8589934592,"iterations":14,"missed_zero_copy":0},"outcomes":[{"tunable":"dirty_ring_size_entries","status":"effective","wanted":65536,"seen":65536,"reason":"","owner":""}],"reaper":{"policy":"predict","ring_entries":65536,"end":"migration ended","rounds":[],"filled_rounds":0,"ring_full_exits":0,"reason":"","round_count":0,"rounds_before":0,"skipped_rounds":0,"interruptions":0,"fullest":0.0,"shortest_interval_ms":0,"longest_interval_ms":0,"waits_ms":0,"costs_ms":0.0},"steps":[{"number":0,"at_ms":2500,"iteration":3,"action":"pause the guest","reason":"after 3","effect":"done","detail":"","forecast":"","steering":false}],"ring_full_exits":0,"postcopy":null,"block":null,"boot":null,"srcu":null,"loads":null,"sends":null}');
CREATE TABLE run_metrics (
	run INTEGER NOT NULL, 
	metric TEXT NOT NULL, 
	value DOUBLE NOT NULL, 
	CONSTRAINT pk_run_metrics PRIMARY KEY (run, metric), 
	CONSTRAINT fk_run_metrics_run FOREIGN KEY(run) REFERENCES runs (number)
);
INSERT INTO "run_metrics" VALUES(1,'total_time_ms',1234.0);
INSERT INTO "run_metrics" VALUES(1,'converged',1.0);
CREATE TABLE runs (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id CHAR(32) NOT NULL, 
	scenario TEXT NOT NULL, 
	setup JSON NOT NULL, 
	"values" JSON NOT NULL, 
	profile TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	testbed TEXT NOT NULL, 
	qemu TEXT NOT NULL, 
	options JSON NOT NULL, 
	host TEXT NOT NULL, 
	state TEXT NOT NULL, 
	failure TEXT NOT NULL, 
	fingerprint TEXT, 
	conditions JSON NOT NULL, 
	campaign CHAR(32), 
	arm TEXT, 
	block INTEGER, 
	position INTEGER, 
	imported_from TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	started_at DATETIME, 
	ended_at DATETIME, study CHAR(32), 
	CONSTRAINT uq_runs_id UNIQUE (id), 
	CONSTRAINT fk_runs_fingerprint FOREIGN KEY(fingerprint) REFERENCES environments (fingerprint)
);
INSERT INTO "runs" VALUES(1,'8d21c49b5a064d75ae3ac2cd8fef16b4','quick/busy','{"name":"quick/busy"}','{"multifd":true}','tuned',2,'direct','system','{}','','completed','','0123456789abcdef','{"load_1min":0.5}','0000000000004000800000000000000b','tuned',1,2,'','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000',NULL);
INSERT INTO "runs" VALUES(2,'0ccdfba1563e4783bcd2accc5cc9485b','quick/idle','{"name":"quick/idle"}','{}','',0,'direct','','{}','','queued','',NULL,'{}',NULL,NULL,NULL,NULL,'','2026-11-21 04:30:00.000000',NULL,NULL,NULL);
CREATE TABLE sample_chunks (
	migration INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	last_at_ms INTEGER NOT NULL, 
	samples INTEGER NOT NULL, 
	packed BLOB NOT NULL, 
	CONSTRAINT pk_sample_chunks PRIMARY KEY (migration, position), 
	CONSTRAINT fk_sample_chunks_migration FOREIGN KEY(migration) REFERENCES migrations (number)
);
INSERT INTO "sample_chunks" VALUES(1,0,19574,200,X'7801EDDCDB6E1DC79506E077E1756FA0CF07BF8A1108B44D3B042452A0B666E20479F77CFFEADDE4166325930B8F6D841144B6BAAB56ADF3B19CBFDDDC9EDF7DF874F3CDDF6EBEFBF9E69B6FFBB6E9DAFCEDFC1D9B6DAD5F79E5B1FE950FC365C1B0BFBAFCEA9A311FBB66DBFCAA1D81F1FCD8EF1FFA7AF302242BB2AF6FA6F9EAD3E5F0820660C1DCCF7D46EAF2CF9CD635C37EF6D5F901B92390DF4E0F31C7E9176476F482E2808A403A16E4CB15032EEBBF60CD8E969F4B012FF8076B8EA30BAA2FF53128E2CB7ECC059D75A73F4B76B665C9817A4E08D681BA1F7DD97CE0D94F972F5971ACCA6FA8BF067750762CCDBF87A6247EC1213B9E197E85503EEF041D08ED282EF995BFFBFE1D831DEC339E2F9FEAD5154BC7660E6D0E3C48BC303908BE20FB4CC74ED6B354BA66CDD10783BF0054A704D79DD556FDA9B9F978F774F34DF7F7E6E6D3F9F6FC99CE7F7B73FBFDF9FE7FEE6E9AB7873726BC69C29B15BC59C19B15FCF75981D8787FBE7BBA3DDF3F3E3C67825DD3FE9B3F6F2BBEE4D0AFCA8FEBFCE5BBC7CF0F3FDC3E255F3F3F7DBE6B7EBC7DFFE9D7FCF976C87FC4DE3776BDB1EBD733C93F9C76F15CE7A7DB874F3FDE3D3DDDFDF0EEBB9FCF772FFD86AE5FBB6D9D95B1DBB275C3B029E9FA6EDEBAB57A0963BB6E6BAF3CECE66EDAE67E6EB6B61BAD4B55390D53B729BDBBAE1BDA7E183DF5F3300CD3923EC2E8F3322801BB6D5CD7CD867E51232E4B8ACD715EFB6EB4AC5BB67E1B6685E7ECEB9642B6EB877E5E3685753FB68B7F2C366CEDBCCD5D4ED8A67EF1275BBBC19F00066DEB67D5BDB32690AB8FB1ADD3DC7AEA7BF42D0B785DBBB4533BA949FB756DC1864A3F2CB0A9770E5D8705947EB5BC9BD4BB1059A6B1CD8E71D806DB3C2DF3D2B779EAC67159DA3EE72ECBD8AF2D4CBBA1EFC775CBB9ED324E4B979E43B76EFD885C248C4B3F7BF06B6D2764B7DB82F094D66BDBAF7DB88EA86E588BECC569789AAF28B5D4D76E6EB7AE18D06E96E5A816F15B7501FAB1278114E5DDB02DED82FFA1702EB97AB3AC25A6719ED7B198B3CEE338E8036C03D6B5CAFE6DE8D661AE56D0B66DED10C6D93F4CB804D83446B0A16E83DABAE4551851AD80B55DC721E2A20F4BBB8695C33A84D3F09E819BA628CE302ED4C8D648D5527C19897708D3A6950057AF463B977A3577DD3A85F41E8EDB9C6615110D343278E023923531C05F96A89EF7DD4CADF53586755BA0EDD5306F6B17E526E40E47A0E1F3D85587620574AC46CCB6624D4820D1A95B293CE25132F5508A2E6CF4D7512D89208AF4866E8A2EB4518F05C9DBAE643994C442355A7A7C2B8DA67DBD0FF0984716837F9135D31BA3F9ED8CC46820F51A03CEBA15C7D19DAF938563685EA936D5F38E5ACE4BC903773DA7DF320F13E1E6D865DAF01D4AF31C9EF886F758135E8E1DCE68BA79D7DA97FED742AD1C866F76E23ED9C6C496180225757894BEC5102A9883A66DC24CEFC2FA6ECB3A0E20720A1BD864A90516F52DDBDD7CA5EFE98C111ACF0204690F51C46DDAD8481A4A3DC18E6B75B4260F613C2173395399EB421A4334B78D099573C0037E6BDC8D7498DADE132C09327B2329BCA7BB135B1D4B67560E8CAE58B6CE54242DB061E4064BB57212E1201EE2CC88B8C935420305FF22F76E63BC2B650BAB9675C6AA050BC7D51B1E8DC30BF069C4E5722D134FB04E112C573B0F65B344B32B22046D9ED18E8F3C46EC9DF54EE31ACEB763DB7325A1981CFBB4D92840DF4E33781B05F3BF22D89910B6951479CD00E1847129D2C6E5858E03C2D8C73257AE62755EB16DE6A0DB683133D8B8017B47421BCB1F333E8E0B0204DA33EDD8CE3CC738F452213AF6E55CE181733831F2C533DF8688916F4877B1F7EF21D6418B005DB839863F4E5B1EA291F42CA7B71D3525AA991ED2B82241849AA27778C95D0418A0F1AE9E78DD6188E192157984EBED24FE885ADE45DA18EF1D43C4CFF030F22EB3EEF083A8C2E159ECE1403D013CF16CF6520A9E307B9942C735C2807084AA8818A7E79275C86F83F0C22947C9BA89847B3A4E04D647321BFAC672F1711515E37CC4DD3A9CBBE376CBAA455D912A470EC4BB7DD1337DBAFB707BFF70FFF0D3AB00CE68A66124ACE6F41CC14F2F21FC14FDD963F8E925889F50B74771DF8F30EEFB11C7013802F969F23F517378558C4655087CA4A2561F41198C232A07C6252C7B7BC465E7F1BB15982D3822B3054768F6F688CD27BE611EA8E9ABA3E77112F5DA79CCC9479005F888B2A7E7307B7A8EB3288E8B42868547A43D711F0B9737BD3A2065251FB3D06706108C2E41F2F41C254FF2235A2C0FFAB206BDFE57EC8FA726DBD07779BC5EF0CFCF1C19CB663F41F3882870AFBCA5E01C31E524CA4370FB7AD1CB7B48CFC4FEC03AFC3E620EC79FB717CF4F752EAEFFF4ECFB4FCFCEDF9EC3FB87908BFB3F71D4ABB8B5BEE240545CECE68EED3B7CB9B30E67EEEDE1CD03F8E2CE2D38FCF9890B84D76BA9EFCCDAA41842121719A5BA38E142BABC706C6077C379DAFDB085872376E0E1891D78B8628F872F0E7D17677CEA05414EFF5A482C95D627E7CCC28B733DC9F6983DDF73BDF4F5B36C8582AE4235A5BC383C07FB531E8FCE5E5C5E41DE7D9EC7C3E9592ACD91CDBCB6C3FD1C662296B7F2387B0E378505173F15F9EE8ECA39174F757A7655247DF155A76191DE492B5F48B9EE7B9C1FCFB7EF5FF91FF1424E26D6CF2F7BDE9E7E7B0E5CCBEDAF774F8FEF3EDEFE7455F771DC9DD1A35449AC5E1BF6DAC878FB4634691B2E3749C6D44801E52AD6088FB29FD190571E308C43DB2CDE0CB57590E14AF4F23E29EEBCD944DB1B4E63B5538A296570D89AF09F1A4EC50798802AC6DB292194338E4D2A4ED11C2232B166F645E89638434331017A9CB2547BAC2C54F6082BB8CA6C11924456B8103BE50A23C79600DCD0CD111EC9F4E4F5E02883D41BC917428C14B1113C9D24F84B0E81005B25EB478B50213AB4AC3098527B0E4E473C32F818C0B170C533E1776A04C3A6AA1BDEC9721B599C23F3AF1C817330EF1A7487F5439FDC2248758B841299B0659A3E24694D95D67381A33A6C985289B6F82D110ACF7D49C61FB1A5701585080A3471115278C705E42E80D72B8C938420BCB6829F341DC64046DE3C6DB11F4B784E30C21CA97813BE4BAC23B212173C66F2504E5109B8F74909C417C880952A8184956BB2301C99929D71B58D081135CBBFA25DCA5F47464DD690996C279591C34396284728A9CD962851B470064839B1E10BF9938A1F83632AEBE3F0224F20D5930D062ACB2F92E340B18B2ECDC94D9543CE8E266D0B7265CDE16E1090B9CB1F7D1079717148DA18DE44C05C3CCC78793077FECECD0A88F7918E147348159B4800123424DD9ED26090F856BE0CD1087A98728ECC172AB102F56F7433493066A98B30B7C84B1E28DFF72E4B298162040EEA2CEA34F5D746FDF0F8F481377E65D652B16870924CFA097FEC059E68C0C19FB09324B043C427B714ECDE4C582D5DA6F8038DF055D217812A4C4153805B9F7495F114EF66B5D8407C81AC2FE4BD12DE897490D6CC6159AAFD88948859375588E1517CD2B7BE53D3D673DEA46C8D678161D598CE8D2A2F73AC400A8722B51005A9749329C98F9849B052AB3B8B33B2DE0FCF52B5BCB1C34FE4A1458A9B534297CDD113D5B03712543F55CDC1279CD18A0207A93061F631498969D6339A24B9B5973F60AEC5B73489C06126F810DA958ED68C1279D862ABAF29C07AC7D4F3EE80D8B29A29DE4FB6E2998F090486626FFC13F56510080D1F523EF82981AA6774E18F9F53AA1C4981820984C84BA11A89174FD89AF54BCFB539BDF421FE87C4E9A2D642CE5A4A1F6C45455A4E20105BB8116D2184F88B34613020066A11987CBA1347053368B420CFE1CCA05917FCE3C7B9F5C06CE937FC99B4625155A482A43FD13AEF5964DEA705439A391D1814CD3210D0F447AC64DA4E57A0D99BC6053D8994A7A964C7B082437C957A2C986081BDCCC9CAB485D4B8910BF0BEEADC4582D2666BA2C356067F8575288A8CD80E238C05E19203A3A5F1803810BA943C7669ACC15CE91598FA8DBEC6D9FBEA14E70A3F89A17E5A0926150886E161B00AFE7E077332A21A813CCAE6032DBAB1263C6A2C4543F0CDE9BBDE6A3004C32ED096DD01C9B6ADC14B6B54B1F91A5B108EBC11910321453E69D659BA4920C7B3914EF0D759B39ECBCF73D9D11427197D8E2C8A2712D6601E893B2BBC524F079392AC9EA937BC047A297DB8CDE9843FD13DBD9C485CDA0EBE3644E0043EB92FD7FE2C8EECDDA7FBBFDEBD4E30B996DF3E9D7AC3E08503D752FBE1FEE9FCF31E84DEB9DFF5EE65B29046DCBF2E8952BA9C58EDBFAAA1F7F226DDBF97F3BFF27462535FF9F4528C9D1278AECA9BAF6C9012B093976DBFFC24D6FCF287EBB72716C6D6AF5FFDD2B366ECBFC75EBAF77F60A9AAF12BD5F3F5C1DA5C5FA5F05AC2E73F3F3D7EFEE9CF1F3F9F77C37C2566CD91E4EB826C731209B53B089E37C8A461E2114E52BB047EC157B34671A0826F4EFC8A0C50AF436EC34F72AA6D23C9316D4877D16FAD03BC3D499E34DCD3AE4FE9BE6A5DC6319ACDA826EA7B5277C5AF4D1244C14E4268532F779AD24C8E4393827AD2AD91475B78029E6656EC51C24B3C1D09BA86AB6EB6BA21386A9636A78563B3225F7579930A20ACD36595A9D41639AD67C0D72435F552E8D299AA28BFD91EC4A4CC62443688ADBCB0278E33482285C3D70ACF4789F9A4E7947702B25E7473C2400998658BA6A4E43FCB3494B2C0E3842227E7252608F79E4C6B8835C9A35C5A3B2F6CD563C7B96C2027494A9811223C28886C0D3007CBB03CE8AEC4B787527D7828076A327B211D7324034148D46CB1D032B4164C99750684596D9663A41760F232FF72E0BC224DBF263A22DF0F27CB12B51AC254731A11329B7B55A0E90536D062A290C30263C8A065280D97B548DEBD9A0D01427D1867A394C723DEAAC9428E682DD8668B1199EE5D90A9B8A3091CEC17359E7672744513AB08D7FD846C3E676BB436600C22D2FF2462B34EA9A2973A9CC2BAA920B2287369088B1376774D92ADC9AD039C52293E230D791C552648DCD2A6CC3795894C1B142C27D0D20BB21587B33EE4A5BA21E58D8684BA4C16956C5E2A47E236B357DB4ED21130B21A14471DF1CF61D9CC6664BA85B506116DDAF1270C7C8F66A6E15D0BCD5B010CAA12A5A85876CFE42FEDF77249537DB748BD37822E01AA4B32BDB514E307EF623D64B55769ECBBAC43234D29ACCB6C5D3AA93B3F938F6B9D9324A68FD1CA242B343FCBB04A63394550B449B504473100E8E83B04A46A413B5A11ABF275D647C79D6C4ECEA295DEBA9F2CCF897AC351A2574CAC3CAE98B8705A3AF5D991A15FD2EF9228F700B6DC2B931D5FE58E4AE312A3C6B27C2E87244BCF4E33148E2890092EE5A42742E40E7D26572561ADA7CA3A84C1D9F4C230209FF9CD1012703C23A1C616BC607FA5D8E89179922C7AD378AE75619041100C16AA1D2D33FE2B0EA85A329205575B574915B8B164C93C16F0CCF80B06CD50B23949866B75A447724A1FAF4E0C570986088DEF4C258224FD01C0474B6A78E225B54BFF148B55BAFB498A8FE805F8067958960D612B37158D9DCD65E20014DFA5677C608C9445D3764E8471213EC0CA69EAEEEB6616C9841505078FC3E1A6AB43A5CE92A717EB52A0AC511B36CACEA218547049B2993D1C6860E71121BBB735620B3251254A5D7A4DD831757B156F5432781914119087144A1C6B44C16D279669E2A6E18A46B6C129FBC69398F161AD9316EA5E9E9B2F10140303BB8489B0253D9779377DB6C0C87CC6757553B801A219BA22CD1EBA7DB164BFE87991C160C45C0BD975F48CC2D528C62B91069B030D7D2E13E430872AC6823BAA359B77FC40C2C910641C1306E75CCD3973D0F63AFA7FF8FCFE7CFFE32FDE1A5904D74C3B892F3D16DBC95DBD27669A387181F0177E13D5E91AB606D77DDC34DA59D3A60CED227FED9C9ABA1341266C66D126469442EF43A8D68BCB3891CDA744F60E33D85D26C9A20A2ED5781008FECC86DC1AE12D6CC8FD82148435A0C233EF329F32F00BE01A4FA50B54D329F8D991E1148FEA2B57C5A57997D194017E20477B70C8937833615DA0B097F4487D55499170BD53A017F219DD1B577847364C235D256D4F4127E2CDAD11B3094FBC4429580DB4780DA7659E25501B37E6D6487C43A6596C167732CC928A589459D6CE00559D74267C12A0827BBE9238A1388057844991C36F2424ECB7465281629942380EAD6E8DA458D53D9507A9669318C9C072C521E6AC22CE530662B8C2B1E6D68882B96E8DA4168DC7DD92077ACAAD91CC55736B04C37250DD1A5154E7D688701E6CF974D1A79EE46526C73993ED521E78A721211A669D4650EC0778F31632DF6F8D9402B9352291824F264F3A2240E4D6489A4C21C08422BDC084D5BCF68E2DF27DE1AD0E8C34C847FE89BCB5A7D7B4CFAACF975B2369F4901E6321E790C73BEC53DADC17D003AB7719E9E484DC1AB95C8E90B1917986C5FAC2BA098E627425596994D38B640E374DEA8CF834654B52E6E7588D96745122C61A09EE7984662BDE04DDDC1A49914F3F736BA4AE446001E185E6DC1A5943691AE2D81BAD943A4A04B3578B938E44A3E3540C3AD1C025BA8C4192FBAD91A094297E3A92D0267A2D181BD1A4D79477D8472FD027189891D75508F69EFEBE6416FF2D67BB9965070D0DEC1A73D7AD91F443E3DDF0A6EE6D700034398A9D5B23E1BD7D300E6780AA5C2D7AB05B6E6E8D64B86E8A90BE45D04FFBC18D1967D6A031BDA07DCEE89E42F090AE9A34FA5A53C634F3F75B237C483D4996ED80A5DC4DD99AC19C1282E81D9334ADF82758A4C5B5DF1A216B5AAF25A22AF1AAEEA7A8F3726B44ED12ED943D087520F0802C2C0457A21A15136E601AF799F4AEFC68C2599C0287C0DC22C49A55A6054FC23816575593CABA5905419E878B0F1F21191127CF92BBA1890FE6904B29C8514329D2E03D4563A8E5D648D22104E7D6482ED620878F2B0F5971501BC786345CA9AEF729BD62A408E1BBE2DCE9E81AFBF735B746C44A50349B2DCE536E8D38CF3AFA20A58E093B95DDA136D3C8DC15C1751DB5CC1BD82895896FF543A61A62A5C558A1FD431BE445E1BD4C2EF7CFB0301657671215C787D47D841AE3477E1A7EBBAAC7F745078858408839A5952DABCC9300942B0C64914AB0BC9C1C22CFDEC9C4D6FD08382A610339B746E6E82C6220B9931F9F5E7BADE2F3A2672C42A331E4100E8AF8AD4C63F12416A3C9285C5311E1242E2D852A8ED01EEE20ED46DBE251BC429D12362D4E4A2E972CA08C5A6257165C412271AF2C6D6CBBEBF0FDF1F1D3F9FBC78F3FBFEAA95DF701DE9E7F730E5C4BECEE2F1FEFBE3FBBA7FBC3E3FF3E9CEF3FDCD57F1DFCEDC3E7F7EF9BFFE847DAC3B98F966B4FB90C9929A27A428E3D264F6C72074BB4480A6CFA241566548CDD44D348910BC9DC2BD729737F251E39B7B7E20BF23E6D627E037C834FD69E7B121221C3D4A589EBCAE44EF472A63D4C892AAB28367B72CE6C3669DCBB37D84D08B59625152CB1892B97B69A90F6E0C08DFF10819B185CA6BBC90CD3C867FB684A39ED7C5E2149775AEF2960138739950C818B965C50CCE0C63D49DD8034E9359FB31E4E698F27EFACD9A477F1705CA9BFC101FCF043DE9224468304BDE11F5AF02B999950093678F015E5E1187C020F1FE0C01DA3C33EEB473C928DC10F6D70532C15BD9C5E4680700E3D7E939BD4DA37B870FEB9C9977C4343CB5E72208FF031373CDD63C4CF016C63DEC0270BF544F12A432C19C23EE04E535EFC4EDE9DCC26DE32F2C9A0A8866C7E27FC4A3C4BB6E95EA4D528D4D7FE7863F7DAC08B2C9CC5EDE913A548263FBCB22F9945728478E9441419089E0537E7F92E694A41EC5BF4C3FA9C2D5751BAD5B33416EDBB7E6628C9933DF32567EF63ECF0DC19F814DED4F81BAC3A337C9D325248C7F27C7E7F974EE5F7770FE7E7FFA44A95F3FFF107F37E1F7FFE00885CBBBE0FF79F3E717C755B2541EB596EBF0F6EBE6171E1C0B5CCF6F9CFFBFB0FF7E777CF7697FFB6FFF2FF67F1C6B4DF1507BE26BAA75C2CFE518EF1EE4D76BF13E7FD4F7AF322BBBFFF03E499B5EE');
INSERT INTO "sample_chunks" VALUES(1,1,22461,30,X'7801E596EB6EE3460C46DFC5BF47C00C39D7BCCAA2309C44C91AF00DB2DC36BBD877EFA1E4248E93A6C076FBABB02D8F462392437E3CD2F7C56A5C6E8F8B9BEF8BDBA7C5CD97D07211177CE417A65F76AD9EBFF374B4B3E0959F77ADD9773EB3FBEC1E9DA7A2CBDC68176D92A59399F32878F9CD2D0EFDB0B8093FDCE238AEC613517C59ACEEC6F5EFFDC2FDAF0777FBED61D38FFDFD8224ADC77E588DEBFDEEB548E2FCF409E7FFF9ECA3E3BB159759BFDD9F76F7ABC1EAFEB0DA1C7BF7FE380EA78FA6DF2FFC37333FE3847D8CC36A777CE887A1BF5FDE3E8DFDAB8A45428B12534B68D16BF2D52717A4B6E843F1A6C612432B481B71D652D1B294DA9AAA2D0B3E6B2BDC295ABD4A41B93989B741A99526A039449386924CF2524B6BC5345E5A552DD63A39162F094F41631689340CA791BBB81A4A6E1259D758A55203839A7C0B0C944FA3619AFAA0C96295C045314F9272CE3E642C106A0ECAB2EC73F2B68C3852C69D859142AA8D80424A4173B691D9AFD5C2D55263137FA983A1DFAED6BBF5EEF12A8DCF821291D6A48AB8EE354F5DC3A4C65A3ED560CC315BF292DDFA1C7FF7BA81EE65074C3E6FC1BC44EA9266D397A18EFB71B5B90A334A8B86AD963F0DE579371FFE5FFAF8D60FFBE561F57821A8482E49BCA6400AA99FD36C884C9562246A2A1901203A6847D4A1D819D57052427288895164694976969B13E1766964948278A7250BB76747A2983215024CF2818F681AA072AA2451A399D1F4069EBBFDB025296F234E24300A7E31599D8658F06A1DC10CEDC18C08E396125E25D128127D2528ADE411F525D627F6CA46347335A139F653088C48680674AFCC60C8DB71B28320B0567CC572C682FA5CB98A788844A379C96DB2693DC1B6903A6D6976926ABDAC826D67795C7FEBAFABED7F559DEFD7C3F834A76DC99368F9CA8F9094E4CC4211E26AFF28AC4E52A4D1AEB475B99FF1EBB03F3D7E3D9CC67943D72E7D445DBE644FA744EFC14D20D3954E565ADC75A4B0F1450E5D2BE41B42A0C20AD9682FD7E50A91B28DA432A6EDBCCBD8A05ECC5136D84425D2840B6AD209E408059C39DC6A341976889C72E222B786985986EEAB876766432308316BE000BE5800C82AAB4D012F96D900B92846A5C61232057608916D59DC891EAD90080B5AD95E665D00C420D5BCD3F41E6D7A673C9D840676A027AB4849119AFC2DB7B6A7CDB87EF81BF8C7E6E1BBC11F545A0B41D682F027F88BE72D67823F0CE6A2C1DF9A7386BF9EE11F40D6047FC3F80C7F337A86BFA160823FB96664F007708C38277D06FA09FE607A86BF017E86BF2ADE27F863C4E04F503C6F0CFED59E0B06FF20E6C9E09F68CB099EA9DA93CAE09FAC98333AEDC93691734287C19F67041C32F81B191919FC8B3D8D26F88BE44B5D1EF6C7F16E7F78BA6AB32B255F2BFBB3F34BEBFD9F87FE8E1799E5FDFE8FDDB8DEF6972F9B92211A1930DEBB2E2687EEF9372A16F86293923840D9E971065B526041761D49EDC42A50AB03C79D0109117301339C5179AC71C1406BEA150EC81DC22AFEF21BD4586B8EE3A6B796BCEB77E3CB8B1639FBE9CF6516B6EBE3911C4C0F16CBF58B839FB6EEDE3CC067926DD6DBF5B87CD98CBD4F9FDFEAFF033783BD2E3C9C369BE5AFF6F3E32FAF780EF4');
CREATE TABLE schedules (
	name TEXT NOT NULL, 
	document JSON NOT NULL, 
	every_s INTEGER NOT NULL, 
	host TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	next_at DATETIME NOT NULL, 
	last CHAR(32), 
	waits TEXT NOT NULL, 
	CONSTRAINT pk_schedules PRIMARY KEY (name)
);
INSERT INTO "schedules" VALUES('nightly','{"name":"nightly"}',86400,'here','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000',NULL,'');
CREATE TABLE services (
	name TEXT NOT NULL, 
	machine TEXT NOT NULL, 
	pid INTEGER NOT NULL, 
	version TEXT NOT NULL, 
	state TEXT NOT NULL, 
	epoch INTEGER NOT NULL, 
	beats INTEGER NOT NULL, 
	heir TEXT NOT NULL, 
	started_at DATETIME NOT NULL, 
	seen_at DATETIME NOT NULL, 
	CONSTRAINT pk_services PRIMARY KEY (name)
);
INSERT INTO "services" VALUES('here-vmtune','here',4711,'0.0','running',1,1,'','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000');
CREATE TABLE slots (
	number INTEGER NOT NULL, 
	migration CHAR(32) NOT NULL, 
	source TEXT NOT NULL, 
	destination TEXT NOT NULL, 
	priority INTEGER NOT NULL, 
	running BOOLEAN NOT NULL, 
	held BOOLEAN NOT NULL, copies BOOLEAN DEFAULT 0 NOT NULL, 
	CONSTRAINT pk_slots PRIMARY KEY (number), 
	CONSTRAINT uq_slots_migration UNIQUE (migration)
);
INSERT INTO "slots" VALUES(2,'7ffec584aeb9446f80546a923fdd76e5','a','b',0,0,0,0);
CREATE TABLE studies (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	id CHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	spec JSON NOT NULL, 
	state TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	host TEXT NOT NULL, 
	finalists JSON, 
	campaign CHAR(32), 
	breaches JSON NOT NULL, 
	result JSON, 
	created_at DATETIME NOT NULL, 
	started_at DATETIME, 
	ended_at DATETIME, 
	CONSTRAINT uq_studies_id UNIQUE (id)
);
INSERT INTO "studies" VALUES(1,'0000000000004000800000000000000a','better','{"name":"better"}','paused','the lab is down','here',NULL,NULL,'[]',NULL,'2026-11-21 04:30:00.000000',NULL,NULL);
CREATE TABLE tokens (
	id TEXT NOT NULL, 
	name TEXT NOT NULL, 
	secret_hash TEXT NOT NULL, 
	scopes JSON NOT NULL, 
	hosts JSON, 
	labels JSON NOT NULL, 
	creator_kind TEXT NOT NULL, 
	creator TEXT NOT NULL, 
	creator_name TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	expires_at DATETIME, 
	revoked_at DATETIME, 
	used_at DATETIME, 
	used_from TEXT NOT NULL, 
	CONSTRAINT pk_tokens PRIMARY KEY (id)
);
INSERT INTO "tokens" VALUES('aaaaaaaaaaaa','ci','$argon2id$v=19$...','["read"]','["a"]','{"tier":"db"}','user','0','root','2026-11-21 04:30:00.000000',NULL,NULL,NULL,'');
INSERT INTO "tokens" VALUES('bbbbbbbbbbbb','left','$argon2id$v=19$...','["read"]','["a"]','{"tier":"db"}','user','0','root','2026-11-21 04:30:00.000000',NULL,'2026-11-21 04:30:00.000000',NULL,'');
CREATE TABLE trials (
	study INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	trial JSON NOT NULL, 
	CONSTRAINT pk_trials PRIMARY KEY (study, number), 
	CONSTRAINT fk_trials_study FOREIGN KEY(study) REFERENCES studies (number)
);
INSERT INTO "trials" VALUES(1,1,'{"number":1,"runs":[]}');
CREATE TABLE "tunings" (
	vm CHAR(32) NOT NULL, 
	state TEXT NOT NULL, 
	profile TEXT NOT NULL, 
	revision INTEGER NOT NULL, 
	application CHAR(32), 
	differing JSON NOT NULL, 
	as_of DATETIME NOT NULL, 
	since DATETIME NOT NULL, 
	CONSTRAINT pk_tunings PRIMARY KEY (vm)
);
INSERT INTO "tunings" VALUES('0000000000004000800000000000000a','drifted','tuned',1,'76c933fe69d54a42a41e5b3b9f6bc524','["multifd"]','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000');
CREATE TABLE vms (
	uuid CHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	host TEXT NOT NULL, 
	labels JSON NOT NULL, 
	seen_at DATETIME, 
	CONSTRAINT pk_vms PRIMARY KEY (uuid), 
	CONSTRAINT fk_vms_host FOREIGN KEY(host) REFERENCES hosts (name)
);
INSERT INTO "vms" VALUES('0000000000004000800000000000000a','guest','b','{"tier":"db","zone":"1"}','2026-11-21 04:30:00.000000');
INSERT INTO "vms" VALUES('0000000000004000800000000000000b','other','a','{}','2026-11-21 04:30:00.000000');
CREATE TABLE vmtune_schema_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT vmtune_schema_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "vmtune_schema_version" VALUES('0026');
CREATE TABLE web_sessions (
	id TEXT NOT NULL, 
	token TEXT, 
	subject TEXT NOT NULL, 
	name TEXT NOT NULL, 
	rights JSON, 
	address TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	seen_at DATETIME NOT NULL, 
	expires_at DATETIME NOT NULL, 
	CONSTRAINT pk_web_sessions PRIMARY KEY (id), 
	CONSTRAINT fk_web_sessions_token FOREIGN KEY(token) REFERENCES tokens (id)
);
INSERT INTO "web_sessions" VALUES('0000000000000000000000000000000000000000000000000000000000000000','aaaaaaaaaaaa','aaaaaaaaaaaa','ci',NULL,'127.0.0.1','2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000','2026-11-22 04:30:00.000000');
CREATE TABLE webhook_deliveries (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	webhook CHAR(32) NOT NULL, 
	message TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	subject TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	state TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	created_at DATETIME NOT NULL, 
	next_at DATETIME, 
	status INTEGER, 
	problem TEXT NOT NULL, 
	ended_at DATETIME, 
	CONSTRAINT uq_webhook_deliveries_webhook_message UNIQUE (webhook, message), 
	CONSTRAINT fk_webhook_deliveries_webhook FOREIGN KEY(webhook) REFERENCES webhooks (id) ON DELETE CASCADE
);
INSERT INTO "webhook_deliveries" VALUES(1,'26378d3b3b634d8588a6252763a3bd52','msg_f887c15ad19642cb84c8089e275ef16b','test','ops','{"type":"test","timestamp":"2026-11-21T04:30:00+00:00","subject":"ops","data":{"webhook":"ops"}}','pending',0,'2026-11-21 04:30:00.000000','2026-11-21 04:30:00.000000',NULL,'',NULL);
CREATE TABLE webhook_outbox (
	name TEXT NOT NULL, 
	event INTEGER NOT NULL, 
	CONSTRAINT pk_webhook_outbox PRIMARY KEY (name)
);
INSERT INTO "webhook_outbox" VALUES('events',0);
CREATE TABLE webhooks (
	id CHAR(32) NOT NULL, 
	name TEXT NOT NULL, 
	url TEXT NOT NULL, 
	events JSON NOT NULL, 
	active BOOLEAN NOT NULL, 
	secret TEXT NOT NULL, 
	old_secret TEXT NOT NULL, 
	old_until DATETIME, 
	created_by TEXT NOT NULL, 
	created_at DATETIME NOT NULL, 
	CONSTRAINT pk_webhooks PRIMARY KEY (id), 
	CONSTRAINT uq_webhooks_name UNIQUE (name)
);
INSERT INTO "webhooks" VALUES('26378d3b3b634d8588a6252763a3bd52','ops','https://ops.example/vmtune','["migration.ended"]',1,'whsec_gYo/6mVr6S4BS/UADu3/7ES1UBYsiX15B1jZrvwSGKI=','whsec_dgAg4A5Mo794e+tROYHP+6I8N8bw5Zo/SKqfjQqGcOo=','2026-11-22 04:30:00.000000','root','2026-11-21 04:30:00.000000');
CREATE INDEX ix_vms_host ON vms (host);
CREATE INDEX ix_assignments_profile ON assignments (profile);
CREATE INDEX ix_applications_vm_number ON applications (vm, number);
CREATE INDEX ix_applications_state ON applications (state);
CREATE INDEX ix_migrations_state ON migrations (state);
CREATE INDEX ix_migrations_vm_number ON migrations (vm, number);
CREATE INDEX ix_runs_scenario_number ON runs (scenario, number);
CREATE INDEX ix_runs_state ON runs (state);
CREATE INDEX ix_runs_campaign_number ON runs (campaign, number);
CREATE INDEX ix_runs_fingerprint ON runs (fingerprint);
CREATE INDEX ix_web_sessions_token ON web_sessions (token);
CREATE INDEX ix_audit_actor_number ON audit (actor, number);
CREATE INDEX ix_audit_outcome_number ON audit (outcome, number);
CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'the audit log can only be added to'); END;
CREATE INDEX ix_campaigns_name_number ON campaigns (name, number);
CREATE INDEX ix_campaigns_state ON campaigns (state);
CREATE INDEX ix_job_orders_service ON job_orders (service);
CREATE INDEX ix_slots_running_priority_number ON slots (running, priority, number);
CREATE INDEX ix_evacuations_host_number ON evacuations (host, number);
CREATE INDEX ix_evacuations_state ON evacuations (state);
CREATE INDEX ix_evacuation_vms_destination_state ON evacuation_vms (destination, state);
CREATE INDEX ix_migrations_samples_kept_ended_at ON migrations (samples_kept, ended_at);
CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit WHEN OLD.number > COALESCE((SELECT max(number) FROM audit_cuts), 0) BEGIN SELECT RAISE(ABORT, 'the audit log can only be added to'); END;
CREATE TRIGGER audit_cuts_are_entries BEFORE INSERT ON audit_cuts WHEN NOT EXISTS (SELECT 1 FROM audit WHERE number = NEW.number AND hash = NEW.hash) BEGIN SELECT RAISE(ABORT, 'no entry of the audit log has this number and hash'); END;
CREATE TRIGGER audit_cuts_no_update BEFORE UPDATE ON audit_cuts BEGIN SELECT RAISE(ABORT, 'the audit log can only be added to'); END;
CREATE TRIGGER audit_cuts_no_delete BEFORE DELETE ON audit_cuts BEGIN SELECT RAISE(ABORT, 'the audit log can only be added to'); END;
CREATE INDEX ix_found_changes_scenario_metric ON found_changes (scenario, metric);
CREATE INDEX ix_found_changes_triage_worse ON found_changes (triage, worse);
CREATE INDEX ix_migrations_downtime_exceeded_number ON migrations (downtime_exceeded, number);
CREATE INDEX ix_vms_name_uuid_host ON vms (name, uuid, host);
CREATE INDEX ix_idempotency_keys_begun_at ON idempotency_keys (begun_at);
CREATE INDEX ix_webhook_deliveries_state_next_at ON webhook_deliveries (state, next_at);
CREATE INDEX ix_webhook_deliveries_ended_at ON webhook_deliveries (ended_at);
CREATE INDEX ix_studies_name_number ON studies (name, number);
CREATE INDEX ix_studies_state ON studies (state);
CREATE INDEX ix_runs_study_number ON runs (study, number);
CREATE INDEX ix_forecasts_held_at ON forecasts (held_at);
CREATE INDEX ix_tunings_state_since ON tunings (state, since);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('migrations',2);
INSERT INTO "sqlite_sequence" VALUES('assignments',2);
INSERT INTO "sqlite_sequence" VALUES('applications',2);
INSERT INTO "sqlite_sequence" VALUES('forecasts',1);
INSERT INTO "sqlite_sequence" VALUES('runs',2);
INSERT INTO "sqlite_sequence" VALUES('campaigns',1);
INSERT INTO "sqlite_sequence" VALUES('studies',1);
INSERT INTO "sqlite_sequence" VALUES('evacuations',1);
INSERT INTO "sqlite_sequence" VALUES('webhook_deliveries',1);
INSERT INTO "sqlite_sequence" VALUES('events',3);
COMMIT;
