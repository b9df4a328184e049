"""The words of the controlled language, as plain tables: one kind a line, ``lemma/form/form`` of an irregular form.

``=`` joins words of one meaning ("doctor=physician"). A kind that is itself a word ("bird") is a hypernym of its line.
"""

from __future__ import annotations

# kind < parent: members. Plurals follow the rule unless written out.
NOUNS = """
worker < person: baker carpenter chef=cook clerk dentist doctor=physician farmer firefighter gardener guard hairdresser
 lawyer=attorney librarian mechanic miner nurse painter photographer pilot plumber sailor tailor teacher
scientist < person: astronomer biologist chemist geologist physicist mathematician
artist < person: actor dancer sculptor novelist poet
musician < person: drummer guitarist pianist singer violinist
relative < person: aunt brother cousin daughter father grandmother mother nephew niece sister son uncle
ruler < person: king queen prince princess emperor
child/children < person: boy girl toddler
bird < animal: crow duck eagle goose/geese hawk heron owl parrot pigeon robin sparrow swan
dog < animal: beagle bulldog poodle spaniel terrier
insect < animal: ant bee beetle butterfly cricket moth wasp
reptile < animal: crocodile lizard tortoise snake
rodent < animal: hamster mouse/mice rat squirrel
- < animal: bear camel cat cow donkey elephant fox goat horse lion monkey pig rabbit=bunny tiger wolf/wolves
fruit < food: apple apricot banana cherry grape lemon orange peach pear plum
vegetable < food: carrot cucumber onion potato/potatoes radish tomato/tomatoes turnip
dessert < food: biscuit=cookie cake pancake pudding tart
- < food: egg omelette pie sandwich sausage
instrument < object: cello flute guitar harp piano trumpet violin
tool < object: axe chisel drill hammer ladder saw spade
garment < object: coat dress glove hat jacket scarf/scarves shirt skirt sweater
container < object: basket bottle=flask box bucket jar suitcase
vehicle < object: bicycle=bike bus car=automobile lorry=truck motorcycle tractor van
device < object: camera clock computer lamp radio telephone=phone
ornament < object: bracelet necklace ring vase
- < object: chair sofa=couch table bench umbrella key knife/knives carpet=rug mirror curtain
publication < text: biography dictionary magazine=periodical newspaper novel
message < text: email letter postcard telegram
- < text: diary poem report speech recipe
dwelling < building: apartment=flat cabin cottage hut palace
- < building: barn bridge chapel library museum theatre
flower < plant: daisy lily orchid rose tulip
tree < plant: birch elm maple oak willow
"""

MALE = "brother father nephew son uncle king prince emperor boy"
FEMALE = "aunt daughter grandmother mother niece sister queen princess girl"
MALE_NAMES = "Adam Carlos David Erik Henry Ivan James Kenji Omar Peter Samuel Thomas"
FEMALE_NAMES = "Alice Anna Clara Emma Fatima Grace Helen Ingrid Julia Maria Nadia Ruth"

# subject kind > object kind: verbs. "+" takes an object and a recipient, "-" no object, "that" a whole clause.
VERBS = """
person > person: accuse admire advise=counsel/counselled answer arrest blame call=phone comfort=console congratulate
 contact criticise deceive=trick defend encourage forgive/forgave/forgiven greet=welcome help=assist hire=employ imitate
 insult interrupt interview mock=ridicule persuade praise protect punish question rescue=save respect reward scold
 support teach/taught/taught thank trust visit warn
person > animal: catch/caught/caught=capture/captured/captured feed/fed/fed groom own ride/rode/ridden tame train
 photograph stroke=pet/petted/petted
animal > animal: attack=assault bite/bit/bitten chase=pursue claw follow frighten=scare hunt injure=hurt/hurt/hurt lick
 notice=spot/spotted/spotted watch=observe
person > food: bake bring/brought/brought buy/bought/bought=purchase cook/cooked/cooked=prepare devour eat/ate/eaten
 order peel refuse=decline serve share slice taste
person > object: break/broke/broken borrow build/built/built=construct choose/chose/chosen=select clean collect damage
 destroy=demolish discard drop/dropped/dropped examine=inspect find/found/found=discover hide/hid/hidden=conceal inherit
 lose/lost/lost=misplace move paint polish push recognise rent repair=mend=fix steal/stole/stolen want=desire
person > text: copy edit finish=complete forget/forgot/forgotten print publish read/read/read recite study translate
 type write/wrote/written=compose
person > building: design enter leave/left/left measure renovate=restore sketch
person > plant: cut/cut/cut draw/drew/drawn grow/grew/grown=cultivate plant sell/sold/sold water
person > -: apologise argue arrive=come/came/come faint fall/fell/fallen hesitate joke kneel/knelt/knelt laugh
 lie/lied/lied sneeze shiver=tremble smile whistle work yawn wait
animal > -: crawl disappear=vanish sleep/slept/slept=doze swim/swam/swum escape limp rest wander=roam
person > +: give/gave/given hand lend/lent/lent mail=post offer send/sent/sent show/showed/shown
"""

FACTIVE = "know/knew/known remember realise discover regret/regretted"
BELIEF = "think/thought/thought believe claim doubt suspect hope"

# kind: adjectives that suit it.
ADJECTIVES = """
person: ambitious brave=courageous calm careful clever=intelligent cheerful=happy curious elderly famous=renowned
 friendly generous gentle honest impatient lonely modest nervous=anxious polite=courteous proud rich=wealthy sad=unhappy
 serious shy=timid strange stubborn tall tired=weary young
animal: agile black brown fierce hungry large=big lazy old playful small=little spotted thin wild wounded white
food: cold delicious=tasty fresh hot=warm ripe salty sour spicy stale sweet
object: broken cheap=inexpensive clean dirty elegant expensive=costly heavy light modern new=recent red blue rusty
 shiny=gleaming strong=sturdy useful valuable wooden
text: amusing=funny boring=dull detailed exciting=thrilling famous=renowned lengthy=long short=brief secret unusual
building: abandoned ancient crowded empty enormous=huge quiet=silent remote ugly yellow
plant: beautiful=lovely dry flowering green rare young
"""

MANNERS = """quickly=rapidly slowly carefully=cautiously quietly=silently angrily=furiously gladly=happily
 reluctantly=unwillingly secretly=covertly suddenly=abruptly eagerly=keenly patiently proudly politely=courteously
 clumsily=awkwardly loudly=noisily gracefully=elegantly calmly nervously=anxiously"""

PLACES = """in the garden|in the kitchen|in the park|in the village|in the harbour|near the river|near the
 station|behind the school|behind the church|at the market|at the airport|at the hotel|in the forest|in the valley|on
 the beach|near the castle|in the courtyard|outside the hospital|outside the bank|beside the lake|near the fountain|in
 the square"""

TIMES = """on Monday|on Tuesday|on Friday|on Sunday|last night|last week|yesterday|last winter|in April|in October|two
 days ago|before lunch|after dinner|before sunrise|after the storm|during the festival|last summer|at noon"""

# verbs that are odd without an object, and verbs that take none
NEEDS_OBJECT = """accuse admire arrest blame comfort console congratulate contact criticise deceive defend imitate
 insult mock ridicule praise protect punish rescue respect reward thank tame groom capture frighten scare damage destroy
 demolish discard examine inspect inherit repair fix borrow find select construct misplace want desire recognise"""
TAKES_NONE = """apologise arrive come faint hesitate kneel laugh lie sneeze shiver tremble smile yawn wait disappear
 vanish sleep doze limp"""

# verbs too close in meaning, or one entailing the other, to be a clear change of meaning
NEAR_VERBS = """devour eat taste share|bake cook serve|destroy damage break drop|polish clean|scold criticise insult
 accuse blame|help rescue protect support defend comfort encourage|interview question interrupt|praise congratulate
 reward|admire respect trust|sleep rest|wander crawl limp|recite read study|teach advise train|injure bite attack
 claw|follow chase hunt|notice watch|laugh smile joke|kneel fall faint|find collect|grow plant water|write type copy
 edit finish|print publish|design sketch measure draw|steal borrow rent buy order|give hand send mail|want choose
 order|move push|catch tame train feed|disappear escape|arrest punish|deceive mock|recognise examine|call contact|own
 ride groom tame"""

# what reviews say
GOOD = """superb wonderful excellent brilliant charming delightful impressive memorable pleasant remarkable outstanding
 marvellous lovely fantastic refreshing splendid terrific appealing enjoyable perfect satisfying fabulous admirable
 inspiring"""
BAD = """awful terrible dreadful dull disappointing tedious poor horrible bland annoying unpleasant mediocre forgettable
 dismal clumsy pathetic appalling tiresome weak ghastly irritating shabby hopeless depressing"""
